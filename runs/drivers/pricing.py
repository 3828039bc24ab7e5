"""The prices a run was given: what each engine call costs, and what they come to (R200, R272)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from runs.kernel.jsonable import JSONValue
from runs.report.cost import CostReport, cost_report
from runs.report.prices import Prices, call_cost
from runs.report.stats import Stats


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """`prices` estimate calls whose engine names no cost; a `report` is made when asked for."""

    prices: Prices = field(default_factory=dict)
    report_prices: Prices | None = None
    baseline_model: str | None = None

    @classmethod
    def of(cls, prices: Prices | None, cost: Mapping[str, Any] | None) -> Self:
        """From the options `prices` and `cost`; raises ValueError for what is no price table."""
        asked = None if cost is None else _asked(cost)
        table = prices if prices is not None else {} if asked is None else asked["prices"]
        _check("prices", table)
        if asked is None:
            return cls(prices=table)
        return cls(
            prices=table, report_prices=asked["prices"], baseline_model=asked["baseline_model"]
        )

    def priced(self, call: Mapping[str, JSONValue]) -> dict[str, JSONValue]:
        """The fields of an `engine:usage` with what the call cost, unless they say it."""
        if isinstance(call.get("cost"), Mapping):
            return dict(call)
        usage, model, own = call.get("usage"), call.get("model"), call.get("cost")
        cost = call_cost(
            model if isinstance(model, str) else "",
            usage if isinstance(usage, Mapping) else {},
            self.prices,
            reported_usd=own if isinstance(own, int | float) else None,
        )
        return {**call, "cost": {**cost}}  # type: ignore[dict-item]  # a TypedDict of JSON

    def report(self, stats: Stats) -> CostReport | None:
        """What the session's tokens cost, if `cost` was given."""
        if self.report_prices is None:
            return None
        return cost_report(stats, self.report_prices, self.baseline_model)


def _asked(cost: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(cost, Mapping) or "prices" not in cost:
        raise ValueError("cost is {prices, baseline_model?}.")
    odd = set(cost) - {"prices", "baseline_model", "baselineModel"}
    if odd:
        raise ValueError(f"cost has no {', '.join(sorted(map(str, odd)))}.")
    _check("cost.prices", cost["prices"])
    baseline = cost.get("baseline_model", cost.get("baselineModel"))
    if baseline is not None and not isinstance(baseline, str):
        raise ValueError("cost.baseline_model is the name of a model.")
    return {"prices": cost["prices"], "baseline_model": baseline}


def _check(what: str, table: object) -> None:
    if not isinstance(table, Mapping) or not all(
        isinstance(entry, Mapping) for entry in table.values()
    ):
        raise ValueError(f"{what} maps a model to its dollars per million tokens.")
