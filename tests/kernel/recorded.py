"""Histories of runs, kept as files: a change of the kernel must still read them the same way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runs.kernel.events import Event
from runs.kernel.graph import Shape, shape_from_json
from tests.kernel.puppet import Puppet

FOLDER = Path(__file__).parent / "histories"


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def write(name: str, puppet: Puppet) -> None:
    """Keep what a puppet went through; only for a new history, never to make an old one fit."""
    events = [
        {
            "seq": event.seq,
            "ts": event.ts,
            "actor": event.actor,
            "kind": event.kind,
            "path": list(event.path),
            "fields": event.fields,
        }
        for event in puppet.events
    ]
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    shape = json.dumps(puppet.shape.to_json(), ensure_ascii=False)
    attended = json.dumps(puppet.attended)
    text = f'{{"shape": {shape},\n"attended": {attended},\n"events": [\n{lines}\n]}}\n'
    (FOLDER / f"{name}.json").write_text(text)


def read(name: str) -> tuple[Shape, bool, list[Event]]:
    wire = json.loads((FOLDER / f"{name}.json").read_text())
    return shape_from_json(wire["shape"]), wire["attended"], list(_events(wire["events"]))


def _events(wires: list[dict[str, Any]]) -> Iterator[Event]:
    for wire in wires:
        yield Event(**{**wire, "path": tuple(wire["path"])})
