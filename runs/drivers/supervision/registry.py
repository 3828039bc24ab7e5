"""Reading the registry: which runs there are, whether they live, and what they last did."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from runs.drivers.places import RUN_ID
from runs.report.lines import format_event

TAIL_BYTES: Final = 256 * 1024
TAIL_LINES: Final = 200
RECENT: Final = 10
Told = dict[str, Any]


def runs_root() -> Path:
    """`~/.obversa/runs`, or `runs` in the folder that OBVERSA_HOME names (runs.md R284)."""
    home = os.environ.get("OBVERSA_HOME")
    return (Path(home) if home else Path.home() / ".obversa") / "runs"


def read_run(run_id: str, *, root: Path | None = None) -> Told | None:
    """The status of a run with `alive` beside it; None for an id that names none (R286)."""
    if not isinstance(run_id, str) or not RUN_ID.match(run_id):
        return None
    return _status((root or runs_root()) / run_id)


def list_runs(*, root: Path | None = None) -> list[Told]:
    """Every registered run, the newest first."""
    folder = root or runs_root()
    if not folder.is_dir():
        return []
    paths = [path for path in folder.iterdir() if RUN_ID.match(path.name)]
    found = [status for path in paths if (status := _status(path)) is not None]
    return sorted(found, key=lambda status: _number(status.get("startedAt")), reverse=True)


def run_progress(run_id: str, *, lines: int = RECENT, root: Path | None = None) -> Told | None:
    """The status, the last lines of the record as people read them, and what blocks the run.

    Looks at no more than the last 256 KiB or 200 lines of the record, and passes over a last
    line that is not whole yet.
    """
    status = read_run(run_id, root=root)
    if status is None:
        return None
    events = list(_tail((root or runs_root()) / run_id / "events.jsonl"))
    told = [format_event(event) for event in events]
    progress = {**status, "lines": [line for line in told if line][-max(0, lines) :]}
    if not lines:
        progress["lines"] = []
    if blocker := _blocker(events, status):
        progress["blocker"] = blocker
    return progress


def _status(folder: Path) -> Told | None:
    try:
        status = json.loads((folder / "status.json").read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(status, dict):
        return None
    return {**status, "alive": status.get("status") == "running" and _lives(status.get("pid"))}


def _lives(pid: object) -> bool:
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _tail(path: Path) -> Iterator[Told]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            content = file.read(TAIL_BYTES)
    except OSError:
        return
    whole = content.split(b"\n")[:-1]
    if size > TAIL_BYTES:
        whole = whole[1:]
    for line in whole[-TAIL_LINES:]:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("kind"), str):
            yield event


def _blocker(events: Sequence[Told], status: Mapping[str, Any]) -> Told | None:
    """What keeps the run from going on, if its last events tell of anything."""
    if status.get("status") == "pass":
        return None
    for event in reversed(events):
        match event["kind"]:
            case "limit:pause":
                return {"kind": "limit-pause", "reason": event.get("reason", "")}
            case "error":
                return {"kind": "error", "reason": event.get("message", "")}
            case "loop:condition" | "condition:result":
                result = event.get("result")
                if isinstance(result, Mapping) and result.get("met") is False:
                    return {"kind": "gate-failing", "reason": result.get("reason", "")}
                return None
            case "dag:node" if _passed(event):
                return None
    return None


def _passed(event: Told) -> bool:
    outcome = event.get("outcome")
    return isinstance(outcome, Mapping) and outcome.get("status") == "pass"
