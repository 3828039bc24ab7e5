"""Loops under `run`: rounds, checks, reviews, limits and stalls (runs.md section 8)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from runs import Outcome, dag, fn_job, kickback, loop, pipeline, predicate, revision_request, run
from runs.drivers.memory import RunResult
from runs.drivers.signal import Signal
from runs.kernel.errors import DeclarationError, LoopError


def kinds(result: RunResult) -> list[str]:
    """The kinds of a run without what only hands work out."""
    return [str(event.kind) for event in result.events if event.kind != "step:ready"]


def of(result: RunResult, kind: str) -> list[dict[str, Any]]:
    return [dict(event.fields) for event in result.events if event.kind == kind]


def rounds(result: RunResult) -> int:
    return len(of(result, "loop:iteration"))


def in_round(number: int) -> Any:
    return predicate(lambda ctx, last: ctx.iteration >= number, f"round {number}")


def rejects(times: int, **more: Any) -> Callable[[Any], Outcome | str]:
    def review(ctx: Any) -> Outcome | str:
        if ctx.iteration > times:
            return "good"
        return revision_request(reason=f"not yet in round {ctx.iteration}", **more)

    return review


def step(label: str = "write") -> Any:
    return fn_job(label, lambda ctx: f"{label} in round {ctx.iteration}")


@pytest.mark.parametrize(
    "given",
    [
        {"name": ""},
        {"check_first": True},
        {"max": 0},
        {"max": True},
        {"max_review_restarts": -1},
        {"delay_ms": -1},
        {"no_progress": 0},
        {"no_progress": {"windows": 2}},
        {"no_progress": {"min_confidence_delta": 2}},
        {"retry": {"on_error": "again"}},
        {"retry": {"tries": 2}},
        {"on_iteration": "print"},
        {"until": 5},
    ],
)
def test_what_cannot_be_a_loop_is_refused_when_it_is_made_r147(given: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        loop(given.pop("name", "l"), step(), **given)


def test_the_events_of_a_loop_come_in_order_r148_r152() -> None:
    result = run(loop("l", step(), until=in_round(2), max=3))
    one_round = ["loop:iteration", "job:start", "job:end", "loop:condition"]
    assert kinds(result) == ["run:start", "loop:start", *one_round * 2, "loop:end", "run:end"]
    assert of(result, "loop:start") == [{"depth": 1, "max": 3}]
    assert [it["iteration"] for it in of(result, "loop:iteration")] == [1, 2]
    (ended,) = of(result, "loop:end")
    assert ended["iterations"] == 2
    assert result.outcome == Outcome(status="pass", summary="write in round 2")


def test_a_signal_set_before_gives_no_round_and_asks_no_gate_r149() -> None:
    signal = Signal()
    signal.set()
    asked: list[int] = []
    gate = predicate(lambda ctx, last: asked.append(1) or True)  # type: ignore[func-returns-value]  # notes the call
    result = run(loop("l", step(), start=gate, until=gate, check_first=True), signal=signal)
    assert result.outcome.status == "aborted"
    assert rounds(result) == 0
    assert asked == []


def test_an_unmet_start_aborts_r150() -> None:
    result = run(loop("l", step(), start=predicate(lambda ctx, last: False, "closed")))
    assert result.outcome.status == "aborted"
    assert rounds(result) == 0
    (checked,) = of(result, "loop:condition")
    assert (checked["which"], checked["iteration"]) == ("start", 0)


def test_check_first_met_runs_no_body_r151() -> None:
    result = run(loop("l", step(), until=in_round(0), check_first=True))
    assert result.outcome.status == "pass"
    assert rounds(result) == 0


def test_check_first_unmet_is_the_last_gate_of_the_first_round_r151_r9() -> None:
    gates: list[Any] = []

    def body(ctx: Any) -> None:
        gates.append(ctx.last_gate and ctx.last_gate.reason)

    run(loop("l", fn_job("b", body), until=in_round(2), check_first=True))
    assert gates == ["round 2", "round 2"]
    gates.clear()
    run(loop("l", fn_job("b", body), until=in_round(2)))
    assert gates == [None, "round 2"]


def test_a_review_behind_a_check_that_is_met_at_once_reads_round_0() -> None:
    job = loop("l", step(), until=in_round(0), check_first=True, review=fn_job("r", rejects(0)))
    result = run(job)
    assert rounds(result) == 1
    assert result.outcome.summary == "good"


def test_without_until_the_bodys_pass_is_the_verdict_r153() -> None:
    result = run(loop("l", fn_job("b", lambda ctx: Outcome(status=_late(ctx, 3)))))
    assert rounds(result) == 3


def _late(ctx: Any, number: int) -> Any:
    return "pass" if ctx.iteration >= number else "fail"


def test_until_decides_even_when_the_body_failed_r153() -> None:
    failing = fn_job("b", lambda ctx: Outcome(status="fail", summary="tests are red"))
    result = run(loop("l", failing, until=in_round(1)))
    assert result.outcome.status == "pass"


def test_stop_on_aborts_with_the_bodys_data_r154() -> None:
    body = fn_job("b", lambda ctx: Outcome(status="pass", data={"n": 1}))
    stop = predicate(lambda ctx, last: True, "budget spent")
    result = run(loop("l", body, stop_on=stop, until=in_round(1)))
    assert result.outcome == Outcome(status="aborted", summary="budget spent", data={"n": 1})


def test_a_review_sends_the_next_round_its_findings_r156_r157_r8() -> None:
    seen: list[Any] = []

    def body(ctx: Any) -> Outcome:
        seen.append(ctx.last_review and ctx.last_review.summary)
        return Outcome(status="pass", summary="text", data={"round": ctx.iteration})

    result = run(loop("l", fn_job("b", body), review=fn_job("r", rejects(2)), max=5))
    assert seen == [None, "not yet in round 1", "not yet in round 2"]
    assert result.outcome == Outcome(status="pass", summary="good", data={"round": 3})
    assert [it["accepted"] for it in of(result, "loop:review")] == [True, True, False]


def test_a_review_reads_what_the_body_came_to() -> None:
    seen: list[Any] = []

    def review(ctx: Any) -> str:
        seen.append((ctx.last_outcome.summary, ctx.last_review))
        return "good"

    run(loop("l", step(), review=fn_job("r", review)))
    assert seen == [("write in round 1", None)]


def test_the_last_round_rejected_fails_with_the_findings_r159() -> None:
    findings = [{"evidence": "no test"}]
    job = loop("l", step(), review=fn_job("r", rejects(9, findings=findings)), max=2)
    result = run(job)
    assert rounds(result) == 2
    assert result.outcome.status == "fail"
    assert result.outcome.revision is not None
    assert result.outcome.revision.findings[0].evidence == "no test"
    assert [it["accepted"] for it in of(result, "loop:review")] == [True, False]


def test_a_loop_that_never_meets_its_gate_is_exhausted_r159() -> None:
    result = run(loop("l", step(), until=in_round(9), max=3))
    assert result.outcome == Outcome(status="exhausted", summary="write in round 3")
    assert rounds(result) == 3


def test_rejections_in_a_row_exhaust_a_loop_r160() -> None:
    job = loop("l", step(), review=fn_job("r", rejects(99)), max=100, max_review_restarts=2)
    result = run(job)
    assert rounds(result) == 2
    assert result.outcome.status == "exhausted"
    assert result.outcome.summary == "not yet in round 2"


def test_a_loop_that_ran_out_sends_nothing_back_r161_r172() -> None:
    built: list[str] = []
    inner = loop("l", step(), review=fn_job("r", lambda ctx: kickback("plan", "wrong")), max=2)
    stages = [
        {"name": "plan", "job": fn_job("plan", lambda ctx: built.append("plan"))},
        {"name": "build", "job": inner, "accepts_kickback_to": ["plan"]},
    ]
    result = run(pipeline("p", stages, max_kickbacks=3))
    assert built == ["plan"]
    assert result.outcome.status == "fail"
    assert of(result, "dag:kickback") == []


@pytest.mark.parametrize(
    ("retry", "ended", "count"),
    [
        (None, "pass", 3),
        ({"on_error": "fail"}, "fail", 1),
        ({"max_consecutive": 2}, "fail", 2),
        ({"on_error": "continue", "backoff_ms": 5}, "pass", 3),
    ],
)
def test_a_body_that_raises_is_a_failed_round_r162(
    retry: dict[str, Any] | None, ended: str, count: int
) -> None:
    def body(ctx: Any) -> Outcome:
        if ctx.iteration < 3:
            raise OSError("the disk is away")
        return Outcome(status="pass")

    result = run(loop("l", body, retry=retry, max=5))
    assert result.outcome.status == ended
    assert rounds(result) == count


def test_a_step_that_raises_ends_its_loop_at_once_r163_r36() -> None:
    def body(ctx: Any) -> None:
        raise OSError("no")

    result = run(loop("l", fn_job("b", body), max=5))
    assert rounds(result) == 1
    assert result.outcome.error is not None
    assert result.outcome.error["code"] == "BODY"


def test_an_error_of_a_graph_ends_the_loop_around_it_r124() -> None:
    def config(ctx: Any) -> None:
        raise LoopError("CONFIG", "no such engine")

    result = run(loop("l", dag("g", {"a": fn_job("a", config)}), max=10))
    assert rounds(result) == 1
    assert result.outcome.error is not None
    assert result.outcome.error["code"] == "CONFIG"


@pytest.mark.parametrize("which", ["start", "until", "stop_on"])
def test_a_check_that_raises_fails_the_loop_in_its_phase_r165(which: str) -> None:
    def broken(ctx: Any, last: Outcome | None) -> bool:
        raise KeyError("gone")

    given: dict[str, Any] = {which: broken}
    result = run(loop("l", step(), **given))
    assert result.outcome.status == "fail"
    assert result.outcome.error is not None
    assert result.outcome.error["code"] == "VALIDATION"
    assert result.outcome.error["phase"] == {"stop_on": "stopOn"}.get(which, which)
    assert len(of(result, "loop:end")) == 1


def test_a_review_that_raises_fails_the_loop_r165() -> None:
    def review(ctx: Any) -> Outcome:
        raise OSError("no")

    result = run(loop("l", step(), review=review))
    assert result.outcome.status == "fail"
    assert result.outcome.error is not None
    assert result.outcome.error["phase"] == "review"


def test_on_iteration_is_called_after_every_body_and_its_error_ends_the_loop_r152_r165() -> None:
    seen: list[tuple[int, str]] = []

    def note(ctx: Any) -> None:
        seen.append((ctx.iteration, ctx.last_outcome.summary))
        if ctx.iteration == 2:
            raise RuntimeError("enough")

    result = run(loop("l", step(), until=in_round(9), on_iteration=note, max=5))
    assert seen == [(1, "write in round 1"), (2, "write in round 2")]
    assert result.outcome.status == "fail"


@pytest.mark.parametrize("fails", [False, True])
def test_on_complete_is_called_once_and_changes_nothing_r148(fails: bool) -> None:
    seen: list[str] = []

    def note(ctx: Any) -> None:
        seen.append(ctx.last_outcome.status)
        if fails:
            raise RuntimeError("no")

    result = run(loop("l", step(), on_complete=note))
    assert seen == ["pass"]
    assert result.outcome.status == "pass"
    assert len(of(result, "error")) == int(fails)


def test_a_cancel_is_seen_after_the_body_r166() -> None:
    signal = Signal()

    def body(ctx: Any) -> Outcome:
        signal.set()
        return Outcome(status="pass", data={"n": 1})

    asked: list[int] = []
    until = predicate(lambda ctx, last: asked.append(1) or True)  # type: ignore[func-returns-value]  # notes the call
    result = run(loop("l", fn_job("b", body), until=until), signal=signal)
    assert result.outcome.status == "aborted"
    assert asked == []
    assert kinds(result)[-2:] == ["loop:end", "run:end"]


def test_a_delay_ends_early_on_cancel_r167() -> None:
    signal = Signal()
    waits: list[dict[str, Any]] = []

    def watch(event: dict[str, Any]) -> None:
        if event["kind"] == "loop:wait":
            waits.append(event)
            signal.set()

    job = loop("l", step(), until=in_round(9), delay_ms=3_600_000)
    result = run(job, signal=signal, on_event=watch)
    assert result.outcome.status == "aborted"
    assert waits[0]["waitMs"] == 3_600_000
    assert rounds(result) == 1


def test_a_delay_is_waited_for_between_rounds() -> None:
    result = run(loop("l", step(), until=in_round(3), delay_ms=30))
    starts = [event.ts for event in result.events if event.kind == "loop:iteration"]
    assert all(later - earlier >= 30 for earlier, later in itertools.pairwise(starts))
