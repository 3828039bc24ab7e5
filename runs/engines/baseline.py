"""The best value a measurement ever had, in a file of its own outside every workspace."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

from runs.engines.filelock import locked


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A value against the baseline; `before` is None for the first one."""

    met: bool
    before: float | None


def home() -> Path:
    """Where baselines are kept unless told otherwise: `OBVERSA_HOME`, or `~/.obversa`."""
    return Path(os.environ.get("OBVERSA_HOME") or Path.home() / ".obversa") / "ratchets"


def compare(folder: Path, key: str, value: float, *, down: bool) -> Compared:
    """Hold the value against the baseline of the key and keep it when it is better (R94)."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{key}.json"
    with locked(folder / f"{key}.lock"):
        before = _read(place)
        better = before is None or (value < before if down else value > before)
        if better:
            part = place.with_suffix(".part")
            part.write_text(json.dumps({"value": value}))
            part.replace(place)
    return Compared(met=better or value == before, before=before)


def _read(place: Path) -> float | None:
    try:
        value = json.loads(place.read_text())["value"]
    except FileNotFoundError:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"the baseline {place.name} holds no number.")
    return float(value)
