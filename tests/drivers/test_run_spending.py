"""What a run spent stands at its end, at its nodes and at the rounds of its loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs import cost_report, fn_job, kickback, loop, pipeline, run
from runs.drivers.context import Context

NONE = {
    "inputTokens": 0,
    "outputTokens": 0,
    "cacheReadInputTokens": 0,
    "cacheCreationInputTokens": 0,
    "unmeasuredCalls": 0,
}


def spend(ctx: Context, tokens: int, usd: float | None = None) -> None:
    used = {"kind": "reported", "inputTokens": tokens, "outputTokens": 1}
    cost = {} if usd is None else {"cost": {"kind": "reported", "usd": usd}}
    ctx.emit("engine:usage", model="small-1", usage=used, **cost)  # type: ignore[arg-type]  # JSON


def spending(label: str, tokens: int, usd: float | None = None) -> Any:
    return fn_job(label, lambda ctx: spend(ctx, tokens, usd))


def figures(result: Any, kind: str, **which: Any) -> list[Any]:
    """The input tokens told by the events of a kind; None where they tell no usage."""
    found = [event for event in result.events if event.kind == kind]
    found = [one for one in found if all(one.fields.get(k) == v for k, v in which.items())]
    return [one.fields["usage"]["inputTokens"] if "usage" in one.fields else None for one in found]


def test_the_end_of_the_run_tells_what_it_used_as_the_result_does() -> None:
    result = run(pipeline("g", [{"name": "a", "job": spending("a", 100, 0.25)}]))

    end = result.events[-1].fields
    assert end["usage"] == result.usage == {**NONE, "inputTokens": 100, "outputTokens": 1}
    assert end["cost"]["usd"] == 0.25
    assert "totalUsage" not in end
    assert result.stats["totalInputTokens"] == 100
    prices = {"small-1": {"inputPerMTokUsd": 1.0, "outputPerMTokUsd": 1.0}}
    assert cost_report(result.stats, prices)["spentUsd"] == 0.000101


PRICES = {"small-1": {"inputPerMTokUsd": 1.0, "outputPerMTokUsd": 5.0}}


def costs(result: Any) -> list[Any]:
    return [event.fields["cost"] for event in result.events if event.kind == "engine:usage"]


def test_a_call_is_priced_by_the_table_unless_its_engine_says_what_it_cost() -> None:
    job = pipeline(
        "g",
        [
            {"name": "a", "job": spending("a", 1000)},
            {"name": "b", "job": spending("b", 1000, 0.25)},
            {"name": "c", "job": fn_job("c", lambda ctx: told(ctx, "small-1", 0.5))},
            {"name": "d", "job": fn_job("d", lambda ctx: told(ctx, "odd"))},
        ],
    )

    result = run(job, prices=PRICES)

    assert costs(result) == [
        {"kind": "estimated", "usd": 0.001005, "entry": "small-1"},
        {"kind": "reported", "usd": 0.25},
        {"kind": "reported", "usd": 0.5},
        {"kind": "unknown"},
    ]
    assert result.events[-1].fields["cost"] == {
        "usd": 0.751005,
        "reportedUsd": 0.75,
        "estimatedUsd": 0.001005,
        "unknownCalls": 1,
        "unknownModels": ["odd"],
    }
    assert result.cost is None


def told(ctx: Context, model: str, cost: float | None = None) -> None:
    more = {} if cost is None else {"cost": cost}
    used = {"kind": "reported", "inputTokens": 1, "outputTokens": 1}
    ctx.emit("engine:usage", model=model, usage=used, **more)  # type: ignore[arg-type]  # JSON


@pytest.mark.parametrize("name", ["baseline_model", "baselineModel"])
def test_a_report_of_the_cost_is_made_when_asked_for(name: str) -> None:
    job = spending("a", 1000)
    prices = {**PRICES, "large-2": {"inputPerMTokUsd": 10.0, "outputPerMTokUsd": 50.0}}

    result = run(job, cost={"prices": prices, name: "large-2"})

    assert (result.cost["spentUsd"], result.cost["savedUsd"]) == (0.001005, 0.009045)
    assert costs(result)[0]["kind"] == "estimated"
    assert "baselineUsd" not in run(job, cost={"prices": prices}).cost


@pytest.mark.parametrize(
    "options",
    [
        {"cost": {}},
        {"cost": {"prices": [1]}},
        {"cost": {"prices": PRICES, "base": "x"}},
        {"cost": {"prices": PRICES, "baseline_model": 1}},
        {"prices": {"small-1": 1.0}},
    ],
)
def test_what_is_no_table_of_prices_is_refused_before_anything_starts(
    options: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"cost|prices"):
        run(fn_job("a", lambda ctx: "done"), record_to=tmp_path / "r.jsonl", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_engines_used_nothing_and_has_no_cost() -> None:
    result = run(fn_job("plain", lambda ctx: "done"))

    assert result.events[-1].fields["usage"] == result.usage == NONE
    assert "cost" not in result.events[-1].fields


def test_each_attempt_of_a_node_tells_its_own() -> None:
    def build(ctx: Context) -> None:
        spend(ctx, 10 * ctx.graph.attempt if ctx.graph else 0)

    def look(ctx: Context) -> Any:
        return kickback("build", "again") if ctx.graph and ctx.graph.attempt == 1 else "good"

    result = run(
        pipeline(
            "g",
            [
                {"name": "build", "job": fn_job("build", build)},
                {"name": "look", "job": fn_job("look", look), "accepts_kickback_to": ["build"]},
            ],
            max_kickbacks=1,
        )
    )

    assert figures(result, "dag:node", node="build", phase="done") == [10, 20]
    assert figures(result, "dag:node", node="look", phase="done") == [None, None]
    assert figures(result, "dag:node", node="build", phase="start") == [None, None]
    assert figures(result, "run:end") == [30]


def test_a_node_counts_what_is_in_the_graph_below_it() -> None:
    inner = pipeline(
        "inner", [{"name": "x", "job": spending("x", 1)}, {"name": "y", "job": spending("y", 2)}]
    )

    result = run(
        pipeline("g", [{"name": "a", "job": inner}, {"name": "b", "job": spending("b", 4)}])
    )

    assert figures(result, "dag:node", node="a", phase="done") == [3]
    assert figures(result, "dag:node", node="b", phase="done") == [4]


def test_a_graph_that_runs_again_begins_with_nothing_spent() -> None:
    graph = pipeline(
        "g", [{"name": "a", "job": fn_job("a", lambda ctx: spend(ctx, ctx.iteration))}]
    )

    result = run(loop("l", graph, until=lambda ctx, last: ctx.iteration >= 2, max=3))

    assert figures(result, "dag:node", node="a", phase="done") == [1, 2]


def test_a_review_tells_its_own_round_with_the_build() -> None:
    def review(ctx: Context) -> Any:
        spend(ctx, 1)
        return "good" if ctx.iteration == 2 else kickback("draft", "again")

    job = loop(
        "l",
        fn_job("draft", lambda ctx: spend(ctx, 10 * ctx.iteration)),
        review=fn_job("review", review),
        max=3,
    )

    result = run(job)

    assert figures(result, "loop:review") == [11, 21]
    assert figures(result, "run:end") == [32]


def test_a_later_session_counts_its_own_and_the_record_as_a_whole(tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"
    works: list[bool] = []

    def second(ctx: Context) -> None:
        spend(ctx, 5)
        if not works:
            works.append(True)
            raise ValueError("not yet")

    job = pipeline(
        "g",
        [{"name": "a", "job": spending("a", 100, 0.5)}, {"name": "b", "job": fn_job("b", second)}],
    )

    first = run(job, record_to=record)
    again = run(job, record_to=record, resume=True)

    assert first.usage["inputTokens"] == 105
    assert again.outcome.passed
    assert again.usage["inputTokens"] == 5
    end = again.events[-1].fields
    assert end["totalUsage"]["inputTokens"] == 110
    assert (end["cost"]["usd"], end["cost"]["unknownCalls"]) == (0.5, 2)
    # What is reused tells what it cost when it was done (R210), what ran again only its own.
    assert figures(again, "dag:node", node="a", phase="done") == [100]
    assert figures(again, "dag:node", node="b", phase="done") == [5]
