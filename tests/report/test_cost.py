from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import cost_report, format_cost_report
from runs.report.prices import call_cost
from runs.report.stats import stats_of
from runs.report.usage import total_spent
from tests.report.records import BEGIN, at, call, end, record, start

PRICES: dict[str, dict[str, float]] = {
    "small-1": {"inputPerMTokUsd": 1.0, "outputPerMTokUsd": 5.0},
    "small-1-mini": {"inputPerMTokUsd": 0.5, "outputPerMTokUsd": 2.0},
    "large-2": {
        "inputPerMTokUsd": 10.0,
        "outputPerMTokUsd": 50.0,
        "cacheWritePerMTokUsd": 12.5,
        "cacheReadPerMTokUsd": 1.0,
    },
}


def usage(**tokens: int) -> dict[str, Any]:
    return {"kind": "reported", "inputTokens": 0, "outputTokens": 0, **tokens}


def stats(**models: dict[str, int]) -> dict[str, Any]:
    return {
        "models": [
            {"model": name.replace("_", "-"), "calls": 1, "unknownUsageCalls": 0, **used}
            for name, used in models.items()
        ]
    }


def test_the_engines_own_figure_wins() -> None:
    cost = call_cost("small-1", usage(inputTokens=1_000_000), PRICES, reported_usd=0.12345678)

    assert cost == {"kind": "reported", "usd": 0.123457}


def test_an_estimate_names_its_entry() -> None:
    assert call_cost("small-1", usage(inputTokens=2_000, outputTokens=300), PRICES) == {
        "kind": "estimated",
        "usd": 0.0035,
        "entry": "small-1",
    }


@pytest.mark.parametrize("model", ["small-1-20260101", "small-1-2026-01-01"])
def test_a_release_date_at_the_end_of_an_id_is_left_out(model: str) -> None:
    assert call_cost(model, usage(inputTokens=1), PRICES)["entry"] == "small-1"


def test_a_call_is_not_priced_like_a_sibling() -> None:
    assert call_cost("small-1-max", usage(inputTokens=1), PRICES) == {"kind": "unknown"}
    assert call_cost("small-1-2026", usage(inputTokens=1), PRICES) == {"kind": "unknown"}


def test_cached_tokens_are_taken_out_of_input_and_priced_on_their_own() -> None:
    used = usage(
        inputTokens=1_000_000,
        outputTokens=10_000,
        cacheCreationInputTokens=200_000,
        cacheReadInputTokens=300_000,
    )

    # 500,000 at 10, 10,000 at 50, 200,000 at 12.5 and 300,000 at 1.
    assert call_cost("large-2", used, PRICES)["usd"] == 5.0 + 0.5 + 2.5 + 0.3
    assert call_cost("small-1", used, PRICES) == {"kind": "unknown"}


@pytest.mark.parametrize("rate", [None, -1.0, "1", True, float("nan")])
def test_a_rate_that_is_none_makes_the_cost_unknown(rate: Any) -> None:
    prices = {"m": {"inputPerMTokUsd": 1.0, "outputPerMTokUsd": rate}}

    assert call_cost("m", usage(outputTokens=1), prices) == {"kind": "unknown"}
    assert call_cost("m", usage(inputTokens=1), prices)["kind"] == "estimated"


def test_unknown_usage_has_no_price() -> None:
    assert call_cost("small-1", {"kind": "unknown"}, PRICES) == {"kind": "unknown"}


def test_the_report_adds_up_and_compares() -> None:
    report = cost_report(
        stats(
            small_1={"inputTokens": 1_000_000, "outputTokens": 100_000},
            small_1_mini={"inputTokens": 1_000_000, "outputTokens": 0},
        ),
        PRICES,
        "large-2",
    )

    assert report["spentUsd"] == 2.0
    assert report["baselineUsd"] == 25.0
    assert report["savedUsd"] == 23.0
    assert format_cost_report(report) == [
        "small-1: 1 call, 1,000,000 in, 100,000 out, $1.50",
        "small-1-mini: 1 call, 1,000,000 in, 0 out, $0.50",
        "measured total: $2.00",
        "baseline large-2: $25.00 (a reconstruction: the same tokens at its prices)",
        "saved $23.00",
    ]


def test_a_baseline_may_have_been_cheaper() -> None:
    report = cost_report(
        stats(large_2={"inputTokens": 1_000, "outputTokens": 0}), PRICES, "small-1"
    )

    assert report["savedUsd"] == -0.009
    assert format_cost_report(report)[-1] == "over by $0.009"


@pytest.mark.parametrize(
    ("model", "entry"),
    [
        ("small-1", "small-1"),
        ("small-1:free", "small-1"),
        ("small-1.5", "small-1"),
        ("small-1-mini-20260101", "small-1-mini"),
        ("small-10", None),
        ("tiny", None),
    ],
)
def test_the_report_takes_the_longest_fitting_entry(model: str, entry: str | None) -> None:
    used = {"model": model, "calls": 1, "inputTokens": 1_000_000, "outputTokens": 0}

    report = cost_report({"models": [used]}, PRICES)

    assert report["models"][0].get("entry") == entry
    assert report["unpricedModels"] == ([] if entry else [model])
    assert ("spentUsd" in report) is (entry is not None)


def test_what_cannot_be_priced_is_named_and_never_a_zero() -> None:
    report = cost_report(
        stats(
            odd={"inputTokens": 5, "outputTokens": 5},
            large_2={"inputTokens": 5, "outputTokens": 5, "cacheReadInputTokens": 3},
            small_1={"inputTokens": 5, "outputTokens": 5, "unknownUsageCalls": 1},
        ),
        PRICES,
        "small-1",
    )

    assert report["unpricedModels"] == ["odd", "large-2"]
    assert report["unknownUsageModels"] == ["small-1"]
    assert not {"spentUsd", "baselineUsd", "savedUsd"} & set(report)
    assert [one for one in report["models"] if "usd" in one] == []
    assert format_cost_report(report)[3:] == [
        "no measured total: no price for odd; cached tokens of large-2; unknown usage of small-1",
        "baseline small-1: no figure, not every token was measured fresh",
    ]


def test_a_baseline_without_a_price_leaves_the_total() -> None:
    report = cost_report(stats(small_1={"inputTokens": 1, "outputTokens": 1}), PRICES, "odd")

    assert format_cost_report(report)[1:] == [
        "measured total: $0.000006",
        "baseline odd: no figure, it has no price",
    ]


def test_a_run_without_calls_spent_nothing() -> None:
    assert cost_report(stats_of([]), PRICES)["spentUsd"] == 0


def test_costs_of_a_record_are_added_as_they_were_recorded() -> None:
    events = record(
        start(),
        {
            **call(model="a", inputTokens=1, outputTokens=1),
            "cost": {"kind": "reported", "usd": 0.2},
        },
        {
            **call(model="a", inputTokens=1, outputTokens=1),
            "cost": {"kind": "estimated", "usd": 0.1},
        },
        call(model="b"),
        start(session=2),
        {**call(model="b"), "cost": {"kind": "unknown"}},
    )

    spent = total_spent(events)
    assert spent.cost() == {
        "usd": 0.3,
        "reportedUsd": 0.2,
        "estimatedUsd": 0.1,
        "unknownCalls": 2,
        "unknownModels": ["b"],
    }
    assert spent.usage()["unmeasuredCalls"] == 2


def test_stats_count_loops_models_and_errors() -> None:
    events = record(
        start(),
        at("l", kind="loop:start", max=3),
        at("l", kind="loop:iteration", iteration=1),
        call("l", model="a", inputTokens=10, outputTokens=2, cacheReadInputTokens=4),
        at("l", kind="loop:review", outcome={"status": "fail"}),
        at("l", kind="loop:iteration", iteration=2),
        call("l", model="a"),
        at("l", kind="loop:review", outcome={"status": "pass"}),
        at("l", kind="loop:end", outcome={"status": "pass"}, iterations=2),
        at("g", "x", kind="error", code="BODY", message="oh"),
        at(kind="error", code="CONFIG", message="no"),
        end(),
    )

    assert stats_of(events) == {
        "startedAt": BEGIN,
        "elapsedMs": 11_000,
        "loopRuns": [
            {
                "path": "l",
                "iterations": 2,
                "reviewsPassed": 1,
                "reviewsFailed": 1,
                "lastStatus": "pass",
            }
        ],
        "models": [
            {
                "model": "a",
                "calls": 2,
                "reportedCalls": 1,
                "unknownUsageCalls": 1,
                "inputTokens": 10,
                "outputTokens": 2,
                "cacheReadInputTokens": 4,
            }
        ],
        "totalInputTokens": 10,
        "totalOutputTokens": 2,
        "totalCacheCreationInputTokens": 0,
        "totalCacheReadInputTokens": 4,
        "totalUnmeasuredCalls": 1,
        "agentCalls": 2,
        "errors": [
            {"path": "g / x", "code": "BODY", "message": "oh", "ts": BEGIN + 9000},
            {"path": "(root)", "code": "CONFIG", "message": "no", "ts": BEGIN + 10_000},
        ],
    }


@given(
    tokens=st.tuples(*[st.integers(0, 10**9)] * 2),
    model=st.sampled_from([*PRICES, "small-1-20260101", "odd"]),
)
def test_a_report_of_one_call_agrees_with_the_price_of_the_call(
    tokens: tuple[int, int], model: str
) -> None:
    events = record(call(model=model, inputTokens=tokens[0], outputTokens=tokens[1]))

    cost = call_cost(model, usage(inputTokens=tokens[0], outputTokens=tokens[1]), PRICES)
    report = cost_report(stats_of(events), PRICES)

    assert report.get("spentUsd") == cost.get("usd")
