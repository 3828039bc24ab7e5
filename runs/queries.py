"""Look-ups that pages, API and commands share."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from runs.kernel.events import Event
from runs.models import Event as EventRow
from runs.models import Run
from runs.turns import folding

EVENTS_SHOWN: Final = 300


def events_after(run_id: Any, after: int, limit: int) -> list[Event]:
    """Return up to `limit` events after the number `after`, in order."""
    rows = EventRow.objects.filter(run_id=run_id, seq__gt=after).order_by("seq")[:limit]
    return [folding.to_event(row) for row in rows]


def last_events(run: Run, count: int = EVENTS_SHOWN) -> list[Event]:
    """Return the end of the record."""
    return events_after(run.pk, max(0, run.last_seq - count), count)


class RunNotNamed(LookupError):
    """The text names no run, or more than one."""


def run_named(text: str) -> Run:
    """The run with this id, or the only one whose id begins so; raises RunNotNamed."""
    if not is_id_prefix(text):
        raise RunNotNamed(f"{text!r} is no beginning of a run's id: 4 digits or more.")
    found = list(Run.objects.filter(id_range(text))[:2])
    if not found:
        raise RunNotNamed(f"There is no run {text}.")
    if len(found) > 1:
        raise RunNotNamed(f"More than one run begins with {text}. Give more digits.")
    return found[0]


def last_of_kind(run: Run, kind: str) -> Event | None:
    """Return the newest event of a kind that the record has."""
    row = EventRow.objects.filter(run=run, kind=kind).order_by("-seq").first()
    return None if row is None else folding.to_event(row)


def is_id_prefix(text: str) -> bool:
    """Tell whether the text may be the beginning of a run's id."""
    return 4 <= len(text) <= 36 and all(mark in "0123456789abcdef-" for mark in text.lower())


def id_range(prefix: str) -> Q:
    """Runs whose id begins with these digits, as a range that the primary key's index serves."""
    digits = prefix.lower().replace("-", "")[:32]
    return Q(pk__gte=UUID(digits.ljust(32, "0")), pk__lte=UUID(digits.ljust(32, "f")))
