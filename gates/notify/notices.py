"""Which events somebody may have to be told: kept with the event, in its transaction."""

from __future__ import annotations

from typing import Any, Final

from gates.models import Notice
from gates.notify import sender
from gates.projection import about
from runs.kernel.events import Event, EventKind
from runs.models import Run
from runs.record import Turn

_OF_REQUESTS: Final = frozenset(
    {
        EventKind.REQUESTED,
        EventKind.REMINDED,
        EventKind.OVERDUE,
        EventKind.ESCALATED,
        EventKind.ASSIGNED,
        EventKind.DELEGATED,
        EventKind.SUBMITTED,
        EventKind.EXPIRED,
        EventKind.WITHDRAWN,
        EventKind.SUPERSEDED,
    }
)
_OF_RUNS: Final = frozenset({EventKind.RUN_END, EventKind.RUN_CANCEL, EventKind.RUN_HELD})


def project(turn: Turn) -> None:
    """Note what is to be told; to whom is found out afterwards, when no run is locked."""
    rows = [_row(turn, event) for event in turn.events if _is_told(turn, event)]
    if rows:
        turn.writes.insert(Notice, rows)
        turn.afterwards(sender.wake)


def _is_told(turn: Turn, event: Event) -> bool:
    if event.kind in _OF_RUNS:
        return turn.run.kind == Run.Kind.WORKFLOW
    if event.kind == EventKind.SUPERSEDED:
        # A question that was closed in its own place: the event after it says why.
        return bool(event.fields["supersededBy"] != event.fields["requestId"])
    return event.kind in _OF_REQUESTS


def _row(turn: Turn, event: Event) -> dict[str, Any]:
    request_id = about(event) if event.kind in _OF_REQUESTS else ""
    return {
        "run_id": turn.run.pk,
        "seq": event.seq,
        "kind": str(event.kind),
        "request_id": request_id,
    }
