"""The events that end what a worker does for a loop: a check, a look at the work, a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runs.kernel.conditions import ConditionResult
from runs.kernel.errors import LoopError
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.jsonable import JSONValue

CHECKS: Final = ("start", "until", "stopOn")
AFTER: Final = "after"
COMPLETE: Final = "complete"
LOOP_TASKS: Final = (*CHECKS, AFTER, COMPLETE)
Found = ConditionResult | Mapping[str, JSONValue]


def ended(path: Path, task: str, iteration: int, found: Found | LoopError, now: int) -> list[Event]:
    """The events of a task that came to this; an error ends the loop (runs.md R165)."""
    told: dict[str, Any] = {"iteration": iteration}
    if task in CHECKS:
        told["which"] = task
    if not isinstance(found, LoopError):
        fields = {"result": found.to_json()} if isinstance(found, ConditionResult) else dict(found)
        return [Event(_kind(task), path, {**told, **fields}, ts=now)]
    shown = {"message": found.message, "code": found.code}
    if task in CHECKS:
        told["result"] = {"met": False, "reason": found.message}
    if task != COMPLETE:
        told["error"] = found.to_json()
    return [
        Event(EventKind.ERROR, path, shown, ts=now),
        Event(_kind(task), path, told, ts=now),
    ]


def phase_of(task: str) -> str:
    """The phase an error of this task belongs to (runs.md R26)."""
    return task if task in CHECKS else "body"


def _kind(task: str) -> EventKind:
    if task == AFTER:
        return EventKind.LOOP_PROGRESS
    return EventKind.LOOP_COMPLETE if task == COMPLETE else EventKind.LOOP_CONDITION
