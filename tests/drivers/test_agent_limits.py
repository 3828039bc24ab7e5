"""What agent steps may spend, and what a limit does to them (runs.md section 16, design D17)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs import (
    EngineError,
    agent_job,
    dag,
    exit_code_for,
    fn_job,
    parallel,
    run,
    sequence,
)
from runs.drivers.memory import RunResult
from runs.testing import MockEngine


def ask(prompt: Any = "Do it.", **more: Any) -> Any:
    return agent_job(prompt, **{"label": "ask", **more})


def usages(result: RunResult) -> list[dict[str, Any]]:
    told = [dict(event.fields) for event in result.events if event.kind == "engine:usage"]
    return [{key: value for key, value in one.items() if key != "cost"} for one in told]


def test_a_failed_call_without_tokens_leaves_the_route_its_budget() -> None:
    def limited() -> str:
        raise EngineError("rate-limit", "slow down")

    second = MockEngine(lambda: "here")
    job = ask(fallback=[{"engine": second}])

    assert run(job, engine=MockEngine(limited), budget=100).outcome.passed


def test_a_failed_call_that_told_its_tokens_counts_against_the_budget() -> None:
    class Spends:
        name = "spends"

        def run(self, request: Any, on_event: Any, cancel: Any) -> Any:
            usage = {"kind": "reported", "inputTokens": 1000, "outputTokens": 100}
            on_event({"kind": "usage", "usage": usage, "model": "m"})
            raise EngineError("rate-limit", "slow down")

    second = MockEngine(lambda: "here")
    result = run(ask(fallback=[{"engine": second}]), engine=Spends(), budget=100)

    assert second.requests == []
    assert (result.outcome.status, result.usage["inputTokens"]) == ("paused", 1000)


@pytest.mark.parametrize(("on_limit", "status"), [("auto", "paused"), ("fail", "fail")])
def test_a_call_beyond_a_hard_budget_is_refused(on_limit: Any, status: str) -> None:
    reply = {"text": "x", "usage": {"kind": "reported", "inputTokens": 150, "outputTokens": 50}}
    engine = MockEngine(lambda: reply)
    job = sequence("s", ask(), ask(), ask())

    result = run(job, engine=engine, budget=150, on_limit=on_limit)

    assert (result.outcome.status, len(engine.requests)) == (status, 1)


def test_ten_agents_side_by_side_spend_no_more_than_is_set_aside() -> None:
    reply = {"text": "x", "usage": {"kind": "reported", "inputTokens": 60, "outputTokens": 40}}
    engine = MockEngine(lambda: reply)
    jobs = {f"a{number}": ask(max_tokens=100) for number in range(10)}

    result = run(parallel("p", jobs, concurrency=10), engine=engine, budget=250)

    # What a call may use is set aside while it runs: one may go past the limit, never ten.
    assert len(engine.requests) == 3
    assert result.budget == {"limit": 250, "spent": 300, "remaining": 0}


def test_d17_a_limit_with_a_known_end_is_waited_out_and_repeats_the_step() -> None:
    calls: list[int] = []

    def reply() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise EngineError("rate-limit", "slow down", retry_after_ms=1)
        return "there"

    result = run(sequence("s", ask()), engine=MockEngine(reply))

    assert result.outcome.passed
    kinds = [event.kind for event in result.events]
    assert kinds.count("limit:wait") == 2


def test_d17_a_limit_nobody_knows_the_end_of_pauses_the_run_and_a_resume_goes_on(
    tmp_path: Path,
) -> None:
    spent, path = [True], tmp_path / "run.jsonl"
    ran: list[str] = []

    def reply() -> str:
        if spent:
            raise EngineError("quota", "come back next month")
        return "there"

    job = dag(
        "g", {"a": fn_job("a", lambda _ctx: ran.append("a")), "b": {"job": ask(), "needs": "a"}}
    )
    first = run(job, engine=MockEngine(reply), record_to=path)
    spent.clear()
    second = run(job, engine=MockEngine(reply), record_to=path, resume=True)

    assert (first.outcome.status, exit_code_for(first.outcome)) == ("paused", 75)
    assert (second.outcome.status, ran) == ("pass", ["a"])


def test_i84_a_failure_that_may_pass_is_tried_again_and_a_lasting_one_is_not() -> None:
    def tried(kind: str) -> int:
        def away() -> str:
            raise EngineError(kind, "no")

        engine = MockEngine(away)
        retry = {"max_attempts": 3, "base_delay_ms": 1}
        run(sequence("s", ask(retry=retry)), engine=engine, on_limit="fail")
        return len(engine.requests)

    assert [tried(kind) for kind in ("transient", "auth", "invalid-config")] == [3, 1, 1]
