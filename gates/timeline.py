"""What happened to one question, told from the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gates.columns import moment
from gates.models import Request
from gates.principals import actor_labels
from gates.projection import about
from runs import folding
from runs.kernel.clocks import expired_text
from runs.kernel.events import Event, EventKind
from runs.models import Event as EventRow
from runs.plaintext import visible

_KINDS: Final[Mapping[str, str]] = {
    EventKind.REQUESTED: "asked",
    EventKind.CLAIMED: "claimed",
    EventKind.RELEASED: "released",
    EventKind.SUBMITTED: "answered",
    EventKind.REJECTED: "answer refused",
    EventKind.SUPERSEDED: "replaced",
    EventKind.WITHDRAWN: "withdrawn",
    EventKind.REMINDED: "reminder",
    EventKind.OVERDUE: "not answered in time, stays open",
    EventKind.ESCALATED: "not answered in time, others asked",
    EventKind.EXPIRED: "time was over",
    EventKind.REFUSED: "kept from answering",
    EventKind.FORCE_RELEASED: "claim taken away",
}
_NOTED: Final = ("reason", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """One line of a question's story; `note` is a stranger's text."""

    seq: int
    kind: str
    kind_label: str
    actor: str
    actor_label: str
    surface: str
    at: datetime
    note: str


def history(row: Request) -> list[Event]:
    """The events about the question in order, as the record has them."""
    rows = EventRow.objects.filter(
        run=row.run_id,
        kind__in=[*_KINDS, EventKind.ROUTED],
        seq__gte=row.asked_seq,
        payload__contains=row.digest,
    )
    events = (folding.to_event(found) for found in rows.order_by("seq"))
    return [event for event in events if about(event) == row.request_id]


def timeline(row: Request) -> list[TimelineEvent]:
    """The question's story; how it was routed is no part of it."""
    events = [event for event in history(row) if event.kind in _KINDS]
    labels = actor_labels(_actor(event) for event in events)
    return [_told(event, labels) for event in _without_echoes(events)]


def _without_echoes(events: Iterable[Event]) -> list[Event]:
    """A withdrawal closes the question in its own place: one line, not two."""
    return [
        event
        for event in events
        if not (
            event.kind == EventKind.SUPERSEDED
            and event.fields["supersededBy"] == event.fields["requestId"]
        )
    ]


def _told(event: Event, labels: Mapping[str, str]) -> TimelineEvent:
    expired = event.kind == EventKind.WITHDRAWN and event.fields.get("expired") is True
    return TimelineEvent(
        seq=event.seq,
        kind=str(event.kind),
        kind_label="time was over" if expired else _KINDS[event.kind],
        actor=event.actor,
        actor_label=labels[_actor(event)],
        surface=event.surface,
        at=moment(event.ts),
        note="" if expired else visible(_said(event)),
    )


def _actor(event: Event) -> str:
    """Who did it: code that answers inside a step has a router and no actor of its own."""
    router = event.fields.get("routerId")
    is_own = event.kind in (EventKind.CLAIMED, EventKind.SUBMITTED)
    return str(router) if is_own and router and event.actor == "system" else event.actor


def _said(event: Event) -> str:
    """The words beside an event; what time did is told in ours."""
    if event.kind == EventKind.EXPIRED:
        return expired_text(event.fields)
    return _note(event.fields)


def _note(fields: Mapping[str, Any]) -> str:
    response = fields.get("response")
    given = response if isinstance(response, Mapping) else fields
    return next((given[name] for name in _NOTED if isinstance(given.get(name), str)), "")
