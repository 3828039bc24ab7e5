"""What a call cost, by its engine's own figure or by a table of prices (runs.md R271, R272)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NotRequired, TypedDict

from runs.kernel.numbers import amount_of, count_of
from runs.kernel.spending import is_reported
from runs.report.text import Wire

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


def call_cost(model: str, usage: Wire, prices: Prices, reported_usd: float | None = None) -> Cost:
    """What one call cost (R272); dollars, to six decimals.

    The engine's own figure wins. Otherwise the entry of exactly this model, or of its id without
    a release date at the end. A missing entry, a missing rate and unknown usage give `unknown`.
    """
    own = amount_of(reported_usd)
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
        rate = amount_of(rates.get(name))
        if count and rate is None:
            return None
        usd += count * (rate or 0) / _MILLION
    return usd
