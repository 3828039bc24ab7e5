"""What a call cost, by its engine's own figure or by a table of prices (runs.md R271, R272)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NotRequired, TypedDict

from runs.kernel.events import Event
from runs.report.text import Wire, count_of, facts, number_of, text, wire_of
from runs.report.usage import USAGE, is_reported

# Dollars per million tokens: inputPerMTokUsd, outputPerMTokUsd, cacheWritePerMTokUsd,
# cacheReadPerMTokUsd; by the id of the model.
Prices = Mapping[str, Mapping[str, Any]]

_RELEASE: Final = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})\Z")
_MILLION: Final = 1_000_000


class Cost(TypedDict):
    """What one call cost: `reported` by its engine, `estimated` by an entry, or `unknown`."""

    kind: str
    usd: NotRequired[float]
    entry: NotRequired[str]


class CostTotals(TypedDict):
    """What many calls cost, and how many of them nobody can price."""

    usd: float
    reportedUsd: float
    estimatedUsd: float
    unknownCalls: int
    unknownModels: list[str]


def call_cost(model: str, usage: Wire, prices: Prices, reported_usd: float | None = None) -> Cost:
    """What one call cost (R272); dollars, to six decimals.

    The engine's own figure wins. Otherwise the entry of exactly this model, or of its id without
    a release date at the end. A missing entry, a missing rate and unknown usage give `unknown`.
    """
    own = _rate(reported_usd)
    if own is not None:
        return {"kind": "reported", "usd": round(own, 6)}
    entry = next((name for name in (model, _RELEASE.sub("", model)) if name in prices), None)
    usd = None if entry is None or not is_reported(usage) else priced(prices[entry], usage)
    if entry is None or usd is None:
        return {"kind": "unknown"}
    return {"kind": "estimated", "usd": round(usd, 6), "entry": entry}


def priced(rates: Mapping[str, Any], usage: Wire) -> float | None:
    """The dollars of these tokens, None where a rate is missing.

    Input tokens count what went into and came from the cache; both have their own rates.
    """
    written = count_of(usage.get("cacheCreationInputTokens"))
    read = count_of(usage.get("cacheReadInputTokens"))
    fresh = max(0, count_of(usage.get("inputTokens")) - written - read)
    parts = (
        (fresh, "inputPerMTokUsd"),
        (count_of(usage.get("outputTokens")), "outputPerMTokUsd"),
        (written, "cacheWritePerMTokUsd"),
        (read, "cacheReadPerMTokUsd"),
    )
    usd = 0.0
    for count, name in parts:
        rate = _rate(rates.get(name))
        if count and rate is None:
            return None
        usd += count * (rate or 0) / _MILLION
    return usd


def _rate(value: object) -> float | None:
    number = number_of(value)
    return None if number is None or number < 0 else float(number)


def no_cost() -> CostTotals:
    """Totals before the first call."""
    return {
        "usd": 0.0,
        "reportedUsd": 0.0,
        "estimatedUsd": 0.0,
        "unknownCalls": 0,
        "unknownModels": [],
    }


def add_cost(totals: CostTotals, model: str, cost: object) -> None:
    """Count one call's cost in the totals."""
    given = facts(cost)
    usd = _rate(given.get("usd"))
    if given.get("kind") not in ("reported", "estimated") or usd is None:
        totals["unknownCalls"] += 1
        if model not in totals["unknownModels"]:
            totals["unknownModels"].append(model)
        return
    part = totals["reportedUsd"], totals["estimatedUsd"]
    if given["kind"] == "reported":
        totals["reportedUsd"] = round(part[0] + usd, 6)
    else:
        totals["estimatedUsd"] = round(part[1] + usd, 6)
    totals["usd"] = round(totals["reportedUsd"] + totals["estimatedUsd"], 6)


def total_cost(events: Iterable[Event | Wire]) -> CostTotals:
    """What every recorded call cost, each at the figure recorded then (R255)."""
    totals = no_cost()
    for wire in map(wire_of, events):
        if wire.get("kind") == USAGE:
            add_cost(totals, text(wire.get("model")), wire.get("cost"))
    return totals
