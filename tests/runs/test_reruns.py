"""A finished run is run again: whole or from a step, with the answers that still fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs import loop, never, reruns, services
from runs.drivers.context import Context
from runs.errors import NothingToRerun, NothingToRetry
from runs.kernel.errors import LoopError
from runs.models import Run, Step
from runs.shapes.approval import approval
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job
from tests import flows
from tests.runs.scenarios import NO, YES, ok

pytestmark = pytest.mark.django_db


def noted(name: str, done: list[str]) -> Any:
    def body(ctx: Context) -> str:
        done.append(name)
        (ctx.workspace.dir / f"{name}.txt").write_text(name, encoding="utf-8")
        return f"{name} {len(done)}"

    return fn_job(name, body)


def asking(done: list[str], question: str = "Ship it?") -> Any:
    return pipeline(
        "p",
        [
            {"name": "build", "job": noted("build", done)},
            {"name": "ok", "job": approval("ok", question, input={"version": "1"})},
            {"name": "ship", "job": noted("ship", done)},
        ],
    )


def finished(done: list[str], answer: dict[str, Any] = YES) -> Run:
    run = flows.start(asking(done), name="again")
    flows.work(run)
    flows.answer(run, answer)
    flows.work(run)
    return flows.fresh(run)


def again(run: Run, **options: Any) -> Run:
    made = reruns.rerun(run.pk, actor="user:9", **options)
    flows.work(made)
    return flows.fresh(made)


def test_a_run_runs_again_whole_with_its_answers() -> None:
    done: list[str] = []
    old = finished(done)
    new = again(old)
    assert done == ["build", "ship", "build", "ship"]
    assert (new.status, new.rerun_of_id, new.started_by) == ("passed", old.pk, "user:9")
    assert flows.pending(new) == []
    (submitted,) = flows.events(new, "callback-submitted")
    # Who answered is still who answered.
    assert submitted.actor == "user:2"
    (reused,) = flows.events(new, "callback-reused")
    assert reused.fields["fromRun"] == str(old.pk)


def test_it_asks_again_when_told_to() -> None:
    new = again(finished([]), keep_answers=False)
    assert len(flows.pending(new)) == 1


def test_another_question_is_asked() -> None:
    done: list[str] = []
    old = finished(done)
    flows.offer(asking(done, "Ship the other?"), name="again")
    assert len(flows.pending(again(old))) == 1


def test_a_refusal_counts_as_well() -> None:
    new = again(finished([], NO))
    assert new.status == "failed"
    assert flows.pending(new) == []


def test_it_begins_at_a_step_and_keeps_what_passed_before() -> None:
    done: list[str] = []
    old = finished(done)
    new = again(old, from_step="ship")
    assert done == ["build", "ship", "ship"]
    assert new.status == "passed"
    kept = Step.objects.get(run=new, name="build")
    assert (kept.status, kept.summary) == ("passed", "build 1")
    folders = Path(flows.folder(new))
    # It works in a copy of what the old run left.
    assert (folders / "build.txt").exists()
    assert (new.done_count, new.total_count) == (3, 3)


def test_a_step_whose_need_had_not_passed_cannot_be_the_first() -> None:
    old = finished([], NO)
    with pytest.raises(NothingToRerun, match="'ok'"):
        reruns.rerun(old.pk, actor="user:9", from_step="ship")


@pytest.mark.parametrize("step", ["nowhere", ""])
def test_a_step_there_is_not_is_refused(step: str) -> None:
    with pytest.raises(NothingToRerun):
        reruns.rerun(finished([]).pk, actor="user:9", from_step=step)


def test_changed_steps_are_run_as_a_whole() -> None:
    old = finished([])
    flows.offer(pipeline("p", [{"name": "ship", "job": ok("ship")}]), name="again")
    with pytest.raises(NothingToRerun, match="changed"):
        reruns.rerun(old.pk, actor="user:9", from_step="ship")
    assert again(old).status == "passed"


def test_a_run_that_goes_on_is_not_run_again() -> None:
    run = flows.start(asking([]), name="again")
    with pytest.raises(NothingToRerun):
        reruns.rerun(run.pk, actor="user:9")


def test_the_same_click_twice_gives_one_run() -> None:
    old = finished([])
    first, second = (reruns.rerun(old.pk, actor="user:9", once="0") for _ in range(2))
    assert first.pk == second.pk


def held(done: list[str]) -> Run:
    """A run whose workflow changed its steps while it waited."""
    run = flows.start(asking(done), name="again")
    flows.work(run)
    flows.offer(
        pipeline(
            "p",
            [
                {"name": "ok", "job": approval("ok", "Ship it?", input={"version": "1"})},
                {"name": "ship", "job": noted("ship", done)},
            ],
        ),
        name="again",
    )
    flows.answer(run, YES)
    flows.work(run)
    assert flows.fresh(run).status == "paused"
    return flows.fresh(run)


def test_a_changed_workflow_carries_on_with_the_old_answers_d20() -> None:
    done: list[str] = []
    old = held(done)
    new = again(old)
    assert (new.status, done) == ("passed", ["build", "ship"])
    assert flows.fresh(old).status == "cancelled"


def test_a_changed_workflow_starts_again_d20() -> None:
    new = again(held([]), keep_answers=False)
    assert len(flows.pending(new)) == 1


# --- the next try ---------------------------------------------------------------------------------


def flaky(tries: list[int], **policy: Any) -> Any:
    def body(ctx: Context) -> str:
        tries.append(1)
        if len(tries) < 2:
            raise LoopError("ENGINE", "the other side is away")
        return "done"

    return dag("g", {"call": {"job": fn_job("call", body), "retry": policy}})


def test_a_step_waits_for_its_next_try_as_a_row_i12() -> None:
    tries: list[int] = []
    run = flows.ran(flaky(tries, base_delay_ms=20))
    assert run.status == "retry_pending"
    assert Step.objects.get(run=run, name="call").status == "retry_pending"
    flows.wake(run)
    flows.work(run)
    assert (flows.fresh(run).status, len(tries)) == ("passed", 2)


def test_somebody_who_does_not_want_to_wait_has_it_tried_at_once() -> None:
    tries: list[int] = []
    run = flows.ran(flaky(tries, base_delay_ms=3_600_000, max_delay_ms=3_600_000))
    services.retry_now(run.pk, actor="user:9")
    flows.work(run)
    assert (flows.fresh(run).status, len(tries)) == ("passed", 2)
    assert flows.fresh(run).wake_at is None
    (retried,) = flows.events(run, "run.retry-now")
    assert retried.actor == "user:9"
    with pytest.raises(NothingToRetry):
        services.retry_now(run.pk, actor="user:9")


def test_a_round_begins_at_once_as_well() -> None:
    run = flows.ran(loop("l", ok("a"), until=never, max=2, delay_ms=3_600_000))
    assert run.status == "retry_pending"
    services.retry_now(run.pk, actor="user:9")
    flows.work(run)
    assert flows.fresh(run).status == "exhausted"


def test_a_cancel_ends_the_wait() -> None:
    run = flows.ran(flaky([], base_delay_ms=3_600_000, max_delay_ms=3_600_000))
    services.cancel_run(run.pk, actor="user:9")
    assert flows.fresh(run).status == "cancelled"
    assert flows.fresh(run).wake_at is None
