"""What the engine calls of a run used and cost, as its record tells it.

A process remembers what it has counted: a page that is looked at again reads only what is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from runs import folding
from runs.kernel.events import Event
from runs.models import Event as EventRow
from runs.models import Run
from runs.report.cost import dollars
from runs.report.prices import CostTotals, add_cost, no_cost
from runs.report.text import joined, many, text
from runs.report.usage import USAGE, UsageTotals, add_usage, no_usage


@dataclass(slots=True)
class Spent:
    """The calls up to the event `seq`."""

    seq: int = 0
    calls: int = 0
    usage: UsageTotals = field(default_factory=no_usage)
    cost: CostTotals = field(default_factory=no_cost)


_spent: Final[folding.Memory[UUID, Spent]] = folding.Memory()


def spent(run: Run) -> Spent:
    """The calls of the run so far."""
    known = _spent.get(run.pk) or Spent()
    if known.seq >= run.last_seq:
        return known
    rows = EventRow.objects.filter(
        run_id=run.pk, kind=USAGE, seq__gt=known.seq, seq__lte=run.last_seq
    )
    counted = _count(known, (folding.to_event(row) for row in rows.order_by("seq")), run.last_seq)
    _spent.put(run.pk, counted)
    return counted


def saw(run_id: UUID, events: list[Event]) -> None:
    """Count events that were read anyway, if they go on where the counting stands."""
    known = _spent.get(run_id)
    if known is not None and events and events[0].seq == known.seq + 1:
        _spent.put(run_id, _count(known, events, events[-1].seq))


def _count(known: Spent, events: Iterable[Event], seq: int) -> Spent:
    """A new value: another thread may be counting on from the same one."""
    counted = deepcopy(known)
    for event in events:
        if event.kind == USAGE:
            counted.calls += 1
            add_usage(counted.usage, event.fields.get("usage"))
            add_cost(counted.cost, text(event.fields.get("model")), event.fields.get("cost"))
    counted.seq = seq
    return counted


def told(run: Run) -> tuple[str, str]:
    """What it used and cost on one line, and how that was counted; nothing without calls."""
    found = spent(run)
    if not found.calls:
        return "", ""
    usage, cost = found.usage, found.cost
    unmeasured, unpriced = usage["unmeasuredCalls"], cost["unknownCalls"]
    tokens = f"{usage['inputTokens']:,} tokens in, {usage['outputTokens']:,} out"
    priced = dollars(cost["usd"]) if unpriced < found.calls else ""
    at_least = "at least " if priced and unpriced else ""
    line = joined(tokens if unmeasured < found.calls else "", at_least + priced, by=", ")
    how = joined(
        many(found.calls, "engine call"),
        f"{unmeasured:,} of unknown usage" if unmeasured else "",
        f"{unpriced:,} of unknown cost" if unpriced else "",
        by=", ",
    )
    return line or "usage unknown", how
