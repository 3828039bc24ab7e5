"""Tokens: what engine calls reported, summed up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runs.kernel.events import Event
from runs.kernel.numbers import count_of, number_of
from runs.kernel.spending import KIND, NOTHING, Spent
from runs.report.text import Wire, facts, joined, many, wire_of


def total_spent(events: Iterable[Event | Wire]) -> Spent:
    """What every recorded call used and cost, each counted once, whatever its session (R255)."""
    spent = NOTHING
    for wire in map(wire_of, events):
        if wire.get("kind") == KIND:
            spent = spent.plus(wire)
    return spent


def tokens(usage: Wire) -> str:
    """`in/out tok`, or nothing where neither is told."""
    told = [number_of(usage.get(name)) for name in ("inputTokens", "outputTokens")]
    if told == [None, None]:
        return ""
    return f"{count_of(told[0])}/{count_of(told[1])} tok"


def run_tokens(totals: Any) -> str:
    """What the run used so far (R277)."""
    given = facts(totals)
    cached = count_of(given.get("cacheReadInputTokens"))
    unknown = count_of(given.get("unmeasuredCalls"))
    return joined(
        tokens(given),
        f"{cached} tok from cache" if cached else "",
        f"{many(unknown, 'call')} with unknown usage" if unknown else "",
        by=", ",
    )
