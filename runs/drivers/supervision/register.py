"""Writing the registry: one folder per run, kept up by its events (runs.md R284, R285).

Nothing here fails the run (R287): a session catches what a listener raises, and a folder that
cannot be made leaves the run without supervision.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from pathlib import Path
from typing import Any, Final

from runs.drivers.errors import RunBusy
from runs.drivers.jsonl import RecordFile
from runs.drivers.supervision.live import Live
from runs.drivers.supervision.registry import runs_root
from runs.kernel.events import Event, EventKind
from runs.kernel.graph import LeafShape, Shape
from runs.kernel.jsonable import thaw

logger = logging.getLogger(__name__)

_SELDOM_SECONDS: Final = 0.2
_AT_ONCE: Final = frozenset({EventKind.RUN_START, EventKind.RUN_END, EventKind.RUN_ABORT})


class Register:
    """A run's folder in the registry; hears every event of its session."""

    def __init__(self, folder: Path, shape: Shape, run_id: str, cwd: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._events = RecordFile.open(folder / "events.jsonl")
        (folder / "proofs.jsonl").write_bytes(b"")
        self._live = Live()
        self._written_at = 0.0
        self._failing = False
        now = _now()
        self._status: dict[str, Any] = {
            "runId": run_id,
            "pid": os.getpid(),
            "cwd": str(cwd),
            "title": shape.label if isinstance(shape, LeafShape) else shape.name,
            "startedAt": now,
            "updatedAt": now,
            "status": "running",
            "shape": shape.to_json(),
        }
        self._put()

    def write(self, event: Event) -> None:
        """Take one event in, and show it soon."""
        self._events.write(event)
        self._live.take(event)
        if event.kind == EventKind.PROOF:
            self._add_proof(event)
        if event.kind == EventKind.RUN_END:
            outcome = event.fields["outcome"]
            self._status |= {"status": outcome["status"], "endedAt": event.ts}
        if event.kind in _AT_ONCE or time.monotonic() - self._written_at > _SELDOM_SECONDS:
            self._put()

    def close(self) -> None:
        """Show the last that happened."""
        self._put()
        self._events.close()

    def _add_proof(self, event: Event) -> None:
        path = self._folder / "proofs.jsonl"
        line = json.dumps(thaw(event.to_wire()), ensure_ascii=False)
        with path.open("a", encoding="utf-8") as proofs:
            proofs.write(line + "\n")
        count = self._status.get("evidence", {}).get("count", 0) + 1
        latest = str(event.fields.get("name", ""))
        self._status["evidence"] = {"count": count, "indexPath": str(path), "latest": latest}

    def _put(self) -> None:
        """Replace the status as a whole: whoever reads it never sees half of one."""
        self._written_at = time.monotonic()
        status = {**self._status, "updatedAt": _now(), "live": self._live.to_json()}
        waiting = self._folder / f".{uuid.uuid4().hex}"
        try:
            waiting.write_text(json.dumps(status, ensure_ascii=False), encoding="utf-8")
            waiting.replace(self._folder / "status.json")
        except OSError as error:
            waiting.unlink(missing_ok=True)
            if not self._failing:
                logger.warning("status not written folder=%s error=%s", self._folder, error)
            self._failing = True


def register(shape: Shape, run_id: str, cwd: Path) -> Register | None:
    """The run in the registry; None where it cannot be registered, and the log says why."""
    folder = runs_root() / run_id
    try:
        return Register(folder, shape, run_id, cwd)
    except (OSError, RunBusy) as error:
        logger.warning("run not registered run=%s error=%s", run_id, error)
        return None


def _now() -> int:
    return time.time_ns() // 1_000_000
