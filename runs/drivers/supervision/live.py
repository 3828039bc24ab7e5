"""What a run is at, as its last events tell it (runs.md R285)."""

from __future__ import annotations

from typing import Any, Final

from runs.kernel.events import Event, EventKind, Path
from runs.kernel.jsonable import thaw

_CALL: Final = "engine:usage"
_COUNTED: Final = (
    "inputTokens",
    "outputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
)
_GATES: Final = frozenset({EventKind.CONDITION, EventKind.LOOP_CONDITION})
Item = dict[str, Any]


class Live:
    """A small fold of the events; times in milliseconds since the epoch."""

    def __init__(self) -> None:
        self._path: Path = ()
        self._iteration = 0
        self._active: dict[tuple[str, Path], Item] = {}
        self._last: dict[str, Any] = {}
        self._usage = dict.fromkeys((*_COUNTED, "calls", "unmeasuredCalls"), 0)

    def take(self, event: Event) -> None:
        """Take one event in."""
        self._path = event.path or self._path
        match event.kind:
            case EventKind.JOB_START:
                self._begin("job", event.path, event, label=event.fields.get("label"))
            case EventKind.JOB_END | EventKind.STEP_LOST:
                self._active.pop(("job", event.path), None)
            case EventKind.NODE:
                self._node(event)
            case EventKind.LOOP_ITERATION:
                self._iteration = int(event.fields["iteration"])
            case EventKind.RUN_END:
                self._active.clear()
                self._last["lastOutcome"] = thaw(event.fields["outcome"])
            case _ if event.kind == _CALL:
                self._call(event.fields.get("usage"))
            case _ if event.kind in _GATES:
                self._last["lastGate"] = thaw(event.fields.get("result"))

    def to_json(self) -> dict[str, Any]:
        """The `live` part of the status."""
        told: dict[str, Any] = {"path": list(self._path), "iteration": self._iteration}
        if self._active:
            items = list(self._active.values())
            told |= {"current": min(items, key=_urgency), "active": items}
        return {**told, **self._last, "usage": dict(self._usage)}

    def _node(self, event: Event) -> None:
        name = str(event.fields["node"])
        place = ("dag-node", (*event.path, name))
        if event.fields["phase"] == "start" and not event.fields.get("reused"):
            self._begin(*place, event, node=name)
            return
        self._active.pop(place, None)
        if "outcome" in event.fields:
            self._last["lastOutcome"] = thaw(event.fields["outcome"])

    def _begin(self, kind: str, path: Path, event: Event, **more: Any) -> None:
        item: Item = {"kind": kind, "path": list(path), **more, "startedAt": event.ts}
        timeout = event.fields.get("timeoutMs")
        if isinstance(timeout, int) and timeout > 0:
            item |= {"timeoutMs": timeout, "deadlineAt": event.ts + timeout}
        self._active[kind, path] = item

    def _call(self, usage: Any) -> None:
        self._usage["calls"] += 1
        counts = usage if isinstance(usage, dict) else {}
        if counts.get("kind") != "reported":
            self._usage["unmeasuredCalls"] += 1
        for name in _COUNTED:
            count = counts.get(name)
            if isinstance(count, int) and not isinstance(count, bool):
                self._usage[name] += count


def _urgency(item: Item) -> tuple[float, int]:
    """The nearest deadline first, then the newest."""
    return item.get("deadlineAt", float("inf")), -item["startedAt"]
