"""A step that fails for a passing reason, and one that meets a limit, under `run`."""

from __future__ import annotations

from typing import Any

import pytest

from runs import Outcome, dag, exit_code_for, fn_job, kickback, loop, predicate, run
from runs.drivers.memory import RunResult
from runs.drivers.signal import Signal
from runs.kernel.errors import DeclarationError, LoopError

QUICK = {"base_delay_ms": 1, "max_delay_ms": 4}


def flaky(times: int, error: LoopError | None = None, **more: Any) -> tuple[Any, list[str]]:
    """A step that fails so often, and the keys of its tries."""
    keys: list[str] = []

    def body(ctx: Any) -> str:
        keys.append(ctx.idempotency_key)
        if len(keys) <= times:
            raise error or LoopError("ENGINE", "the other side is away")
        return "done"

    return fn_job("call", body, **more), keys


def of(result: RunResult, kind: str) -> list[dict[str, Any]]:
    return [dict(event.fields) for event in result.events if event.kind == kind]


@pytest.mark.parametrize("retry", [0, "often", {"tries": 2}, {"jitter": 2}, {"max_delay_ms": -1}])
def test_a_policy_that_cannot_be_is_refused(retry: Any) -> None:
    with pytest.raises(DeclarationError):
        fn_job("call", print, retry=retry)
    with pytest.raises(DeclarationError):
        dag("g", {"a": {"job": fn_job("call", print), "retry": retry}})


@pytest.mark.parametrize("shape", ["alone", "in a graph", "in a loop", "as a review"])
def test_a_passing_failure_is_tried_again_under_the_same_key_i89_i92(shape: str) -> None:
    step, keys = flaky(2, retry={**QUICK, "max_attempts": 3})
    job = {
        "alone": step,
        "in a graph": dag("g", {"a": step}),
        "in a loop": loop("l", step, max=1),
        "as a review": loop("l", fn_job("b", lambda ctx: None), review=step, max=1),
    }[shape]
    result = run(job)
    assert result.outcome.status == "pass"
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert [it["attempt"] for it in of(result, "run.retry-pending")] == [1, 2]


def test_the_last_error_is_kept_unchanged_i86() -> None:
    step, keys = flaky(9, retry={**QUICK, "max_attempts": 2})
    result = run(step)
    assert len(keys) == 2
    assert result.outcome.error == LoopError("ENGINE", "the other side is away").to_json()


def test_without_a_policy_nothing_is_tried_again() -> None:
    step, keys = flaky(1)
    assert run(step).outcome.status == "fail"
    assert len(keys) == 1


def test_a_node_says_it_for_its_step() -> None:
    step, keys = flaky(1)
    result = run(dag("g", {"a": {"job": step, "retry": {**QUICK, "max_attempts": 2}}}))
    assert result.outcome.status == "pass"
    assert len(keys) == 2


def test_a_cancel_ends_the_wait() -> None:
    signal = Signal()
    step, keys = flaky(9, retry={"base_delay_ms": 3_600_000, "max_delay_ms": 3_600_000})

    def watch(event: dict[str, Any]) -> None:
        if event["kind"] == "run.retry-pending":
            signal.set()

    result = run(dag("g", {"a": step}), signal=signal, on_event=watch)
    assert result.outcome.status == "aborted"
    assert len(keys) == 1


def test_a_limit_with_a_known_end_is_waited_out_in_the_same_round_r263() -> None:
    step, keys = flaky(2, LoopError("RATE_LIMIT", "slow down", retry_after_ms=2))
    result = run(loop("l", step, max=1))
    assert result.outcome.status == "pass"
    assert len(keys) == 3
    assert [it["waitMs"] for it in of(result, "limit:wait")] == [2, 2]
    assert len(of(result, "loop:iteration")) == 1


def test_a_limit_without_one_pauses_the_run_r262() -> None:
    step, _ = flaky(9, LoopError("BUDGET", "no tokens left"))
    result = run(dag("g", {"a": loop("l", step, max=3)}))
    assert result.outcome.status == "paused"
    assert exit_code_for(result.outcome) == 75
    assert [it["code"] for it in of(result, "limit:pause")] == ["BUDGET"]


def test_on_limit_fail_takes_the_ordinary_path_r262() -> None:
    step, keys = flaky(9, LoopError("RATE_LIMIT", "slow down", retry_after_ms=2))
    result = run(step, on_limit="fail")
    assert result.outcome.status == "fail"
    assert len(keys) == 1


def test_a_wait_that_is_too_long_pauses_r262() -> None:
    step, _ = flaky(9, LoopError("RATE_LIMIT", "slow down", retry_after_ms=50))
    assert run(step, max_wait_ms=10).outcome.status == "paused"


@pytest.mark.parametrize("options", [{"on_limit": "never"}, {"max_wait_ms": -1}])
def test_options_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        run(fn_job("a", lambda ctx: None), **options)


def test_a_loop_round_that_was_tried_again_goes_on_with_its_checks() -> None:
    step, keys = flaky(1, retry=QUICK | {"max_attempts": 2})
    until = predicate(lambda ctx, last: last == Outcome(status="pass", summary="done"))
    assert run(loop("l", step, until=until, max=1)).outcome.status == "pass"
    assert len(keys) == 2


def test_a_body_that_is_tried_again_answers_its_review_anew() -> None:
    seen: list[str | None] = []

    def work(ctx: Any) -> Any:
        seen.append(None if ctx.last_review is None else ctx.last_review.summary)
        if len(seen) == 2:
            raise LoopError("RATE_LIMIT", "slow down", retry_after_ms=1)
        return None

    def review(_ctx: Any) -> Any:
        return kickback("body", "again") if len(seen) < 3 else None

    result = run(loop("l", fn_job("body", work), review=fn_job("review", review), max=2))

    assert (result.outcome.status, seen) == ("pass", [None, "again", "again"])
