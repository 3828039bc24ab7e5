"""What happened to one question, told from the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gates.models import Request
from gates.principals import actor_labels
from gates.projection import about
from runs.kernel.clocks import expired_text
from runs.kernel.events import Event, EventKind
from runs.kernel.moments import moment
from runs.models import Event as EventRow
from runs.plaintext import visible
from runs.turns import folding

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
    EventKind.RESPONDED: "one of several answered",
    EventKind.DEPUTIZED: "answers for somebody who is away",
    EventKind.ASSIGNED: "assigned",
    EventKind.DELEGATED: "handed on",
    EventKind.OVERRIDDEN: "glass broken",
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
    labels = actor_labels(actor for event in events for actor in (_actor(event), _named(event)))
    return [_told(event, labels) for event in _without_echoes(events)]


def _without_echoes(events: Iterable[Event]) -> list[Event]:
    """One line, not two, for what the record says twice."""
    return [event for event in events if not _is_echo(event)]


def _is_echo(event: Event) -> bool:
    match event.kind:
        case EventKind.SUPERSEDED:
            # A withdrawal closes the question in its own place.
            return bool(event.fields["supersededBy"] == event.fields["requestId"])
        case EventKind.CLAIMED:
            # Whoever was given the question did nothing yet.
            return event.actor not in ("system", event.fields["routerId"])
        case EventKind.RESPONDED:
            return event.fields.get("settles") is True
    return False


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
        note="" if expired else visible(_said(event, labels)),
    )


def _actor(event: Event) -> str:
    """Who did it: code that answers inside a step has a router and no actor of its own."""
    router = event.fields.get("routerId")
    is_own = event.kind in (EventKind.CLAIMED, EventKind.SUBMITTED)
    return str(router) if is_own and router and event.actor == "system" else event.actor


def _named(event: Event) -> str:
    """Who was given the question, or for whom somebody answered."""
    return str(event.fields.get("to") or event.fields.get("deputyFor") or "")


def _said(event: Event, labels: Mapping[str, str]) -> str:
    """The words beside an event; what time did is told in ours."""
    if event.kind == EventKind.EXPIRED:
        return expired_text(event.fields)
    note, named = _note(event.fields), _named(event)
    if not named:
        return note
    whom = f"{'for' if 'deputyFor' in event.fields else 'to'} {labels[named]}"
    return f"{whom}: {note}" if note else whom


def _note(fields: Mapping[str, Any]) -> str:
    response = fields.get("response")
    given = response if isinstance(response, Mapping) else fields
    return next((given[name] for name in _NOTED if isinstance(given.get(name), str)), "")
