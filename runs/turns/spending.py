"""What the engine calls of a run used and cost, as its record tells it.

A process remembers what it has counted: a page that is looked at again reads only what is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from runs.kernel.events import Event
from runs.kernel.spending import KIND, NOTHING, Spent
from runs.models import Event as EventRow
from runs.models import Run
from runs.report.cost import dollars
from runs.report.text import joined, many
from runs.turns import folding


@dataclass(frozen=True, slots=True)
class Counted:
    """The calls up to the event `seq`."""

    seq: int = 0
    spent: Spent = NOTHING


_counted: Final[folding.Memory[UUID, Counted]] = folding.Memory()


def spent(run: Run) -> Spent:
    """The calls of the run so far."""
    known = _counted.get(run.pk) or Counted()
    if known.seq < run.last_seq:
        rows = EventRow.objects.filter(
            run_id=run.pk, kind=KIND, seq__gt=known.seq, seq__lte=run.last_seq
        )
        events = (folding.to_event(row) for row in rows.order_by("seq"))
        known = _count(known, events, run.last_seq)
        _counted.put(run.pk, known)
    return known.spent


def saw(run_id: UUID, events: list[Event]) -> None:
    """Count events that were read anyway, if they go on where the counting stands."""
    known = _counted.get(run_id)
    if known is not None and events and events[0].seq == known.seq + 1:
        _counted.put(run_id, _count(known, events, events[-1].seq))


def _count(known: Counted, events: Iterable[Event], seq: int) -> Counted:
    found = known.spent
    for event in events:
        if event.kind == KIND:
            found = found.plus(event.fields)
    return Counted(seq, found)


def told(run: Run) -> tuple[str, str]:
    """What it used and cost on one line, and how that was counted; nothing without calls."""
    found = spent(run)
    if not found.calls:
        return "", ""
    unmeasured, unpriced = found.unmeasured_calls, found.unknown_calls
    tokens = f"{found.input_tokens:,} tokens in, {found.output_tokens:,} out"
    priced = dollars(found.usd) if unpriced < found.calls else ""
    at_least = "at least " if priced and unpriced else ""
    line = joined(tokens if unmeasured < found.calls else "", at_least + priced, by=", ")
    how = joined(
        many(found.calls, "engine call"),
        f"{unmeasured:,} of unknown usage" if unmeasured else "",
        f"{unpriced:,} of unknown cost" if unpriced else "",
        by=", ",
    )
    return line or "usage unknown", how
