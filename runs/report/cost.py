"""What the measured tokens of a run cost, and would have cost elsewhere (runs.md R273, R274)."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from runs.kernel.numbers import count_of
from runs.report.prices import Prices, priced
from runs.report.text import Wire, facts, items, many, text


class ModelCost(TypedDict):
    """One model of a report; without `usd` where its calls cannot be priced."""

    model: str
    calls: int
    inputTokens: int
    outputTokens: int
    entry: NotRequired[str]
    usd: NotRequired[float]


class CostReport(TypedDict):
    """What the measured tokens cost, and what they would have cost at a baseline's prices."""

    models: list[ModelCost]
    unpricedModels: list[str]
    cachedModels: list[str]
    unknownUsageModels: list[str]
    spentUsd: NotRequired[float]
    baselineModel: NotRequired[str]
    baselineUsd: NotRequired[float]
    savedUsd: NotRequired[float]


def cost_report(stats: Wire, prices: Prices, baseline_model: str | None = None) -> CostReport:
    """Price the tokens that `stats` measured; no figure is ever a silent 0 (R273).

    An entry counts for a model of its id, or of an id that goes on with `-`, `:` or `.`; the
    longest wins. `spentUsd` is there only if every model is priced, used no cached tokens and
    told its usage; `unpricedModels` (those with cached tokens among them) and
    `unknownUsageModels` say which were not. `baselineUsd` prices the same tokens as if the
    baseline had used them.
    """
    report: CostReport = {
        "models": [],
        "unpricedModels": [],
        "cachedModels": [],
        "unknownUsageModels": [],
    }
    for used in map(facts, items(stats.get("models"))):
        _add_model(report, used, prices)
    measured = not report["cachedModels"] and not report["unknownUsageModels"]
    if measured and not report["unpricedModels"]:
        report["spentUsd"] = round(sum(one["usd"] for one in report["models"]), 6)
    if baseline_model is not None:
        report["baselineModel"] = baseline_model
        _add_baseline(report, prices, baseline_model, measured=measured)
    return report


def _add_model(report: CostReport, used: Wire, prices: Prices) -> None:
    name = text(used.get("model"))
    cost: ModelCost = {
        "model": name,
        "calls": count_of(used.get("calls")),
        "inputTokens": count_of(used.get("inputTokens")),
        "outputTokens": count_of(used.get("outputTokens")),
    }
    report["models"].append(cost)
    cached = ("cacheCreationInputTokens", "cacheReadInputTokens")
    is_cached = any(count_of(used.get(field)) for field in cached)
    is_unknown = bool(count_of(used.get("unknownUsageCalls")))
    entry = _entry(name, prices)
    usd = None if entry is None else priced(prices[entry], cost)
    if is_cached:
        report["cachedModels"].append(name)
    if is_unknown:
        report["unknownUsageModels"].append(name)
    if entry is None or usd is None or is_cached:
        report["unpricedModels"].append(name)
    if entry is None or usd is None:
        return
    cost["entry"] = entry
    if not is_cached and not is_unknown:
        cost["usd"] = round(usd, 6)


def _entry(model: str, prices: Prices) -> str | None:
    if model in prices:
        return model
    begins = [name for name in prices if name and model.startswith(name)]
    fitting = [name for name in begins if model[len(name)] in "-:."]
    return max(fitting, key=len, default=None)


def _add_baseline(report: CostReport, prices: Prices, model: str, *, measured: bool) -> None:
    entry = _entry(model, prices)
    if entry is None or not measured:
        return
    each = [priced(prices[entry], one) for one in report["models"]]
    usd = [one for one in each if one is not None]
    if len(usd) < len(each):
        return
    report["baselineUsd"] = round(sum(usd), 6)
    if "spentUsd" in report:
        report["savedUsd"] = round(report["baselineUsd"] - report["spentUsd"], 6)


def format_cost_report(report: CostReport) -> list[str]:
    """The report in lines: one per model, the total or why there is none, and the baseline."""
    lines = [_model_line(one) for one in report["models"]]
    lines.append(_total_line(report))
    if "baselineModel" in report:
        lines.append(_baseline_line(report))
    if "savedUsd" in report:
        saved = report["savedUsd"]
        lines.append(f"saved {dollars(saved)}" if saved >= 0 else f"over by {dollars(-saved)}")
    return lines


def _model_line(one: ModelCost) -> str:
    told = dollars(one["usd"]) if "usd" in one else "no price"
    calls = many(one["calls"], "call")
    used = f"{one['inputTokens']:,} in, {one['outputTokens']:,} out"
    return f"{one['model'] or 'a model'}: {calls}, {used}, {told}"


def _total_line(report: CostReport) -> str:
    if "spentUsd" in report:
        return f"measured total: {dollars(report['spentUsd'])}"
    unpriced = report["unpricedModels"]
    reasons: tuple[tuple[str, list[str]], ...] = (
        ("no price for", [one for one in unpriced if one not in report["cachedModels"]]),
        ("cached tokens of", report["cachedModels"]),
        ("unknown usage of", report["unknownUsageModels"]),
    )
    why = "; ".join(f"{what} {', '.join(names)}" for what, names in reasons if names)
    return f"no measured total: {why}"


def _baseline_line(report: CostReport) -> str:
    name = text(report["baselineModel"])
    if "baselineUsd" in report:
        same = "a reconstruction: the same tokens at its prices"
        return f"baseline {name}: {dollars(report['baselineUsd'])} ({same})"
    measured = not report["cachedModels"] and not report["unknownUsageModels"]
    why = "it has no price" if measured else "not every token was measured fresh"
    return f"baseline {name}: no figure, {why}"


def dollars(usd: float) -> str:
    """An amount with the decimals it needs, two at least and six at most."""
    whole, _, rest = f"{usd:,.6f}".partition(".")
    return f"${whole}.{rest.rstrip('0').ljust(2, '0')}"
