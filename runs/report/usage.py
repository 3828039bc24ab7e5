"""Tokens: what engine calls reported, summed up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypedDict

from runs.kernel.events import Event
from runs.report.text import Wire, count_of, facts, joined, many, number_of, wire_of

USAGE: Final = "engine:usage"


class UsageTotals(TypedDict):
    """Tokens of many calls; a call that reported none is counted, never guessed (R201)."""

    inputTokens: int
    outputTokens: int
    cacheReadInputTokens: int
    cacheCreationInputTokens: int
    unmeasuredCalls: int


def no_usage() -> UsageTotals:
    """Totals before the first call."""
    return {
        "inputTokens": 0,
        "outputTokens": 0,
        "cacheReadInputTokens": 0,
        "cacheCreationInputTokens": 0,
        "unmeasuredCalls": 0,
    }


def is_reported(usage: Wire) -> bool:
    """Whether the call said what it used."""
    return usage.get("kind", "reported") == "reported" and (
        number_of(usage.get("inputTokens")) is not None
        or number_of(usage.get("outputTokens")) is not None
    )


def add_usage(totals: UsageTotals, usage: object) -> None:
    """Count one call's `usage` in the totals."""
    given = facts(usage)
    if not is_reported(given):
        totals["unmeasuredCalls"] += 1
        return
    totals["inputTokens"] += count_of(given.get("inputTokens"))
    totals["outputTokens"] += count_of(given.get("outputTokens"))
    totals["cacheReadInputTokens"] += count_of(given.get("cacheReadInputTokens"))
    totals["cacheCreationInputTokens"] += count_of(given.get("cacheCreationInputTokens"))


def total_usage(events: Iterable[Event | Wire]) -> UsageTotals:
    """What every recorded call used, each counted once, whatever its session (R255)."""
    totals = no_usage()
    for wire in map(wire_of, events):
        if wire.get("kind") == USAGE:
            add_usage(totals, wire.get("usage"))
    return totals


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
