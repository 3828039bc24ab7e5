from __future__ import annotations

import threading
from typing import Any

import pytest

from runs import services, sweep
from runs.attempts import worker
from runs.drivers.context import Context
from runs.models import Attempt, Run
from runs.shapes.approval import approval
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job
from runs.stored import RecordCallbacks
from tests import flows

pytestmark = pytest.mark.django_db


def cancel(run: Run) -> Run:
    return services.cancel_run(run.pk, actor="user:1", surface="browser")


def resume(run: Run) -> Run:
    services.resume_run(run.pk, actor="user:1", surface="browser")
    flows.work(run)
    return flows.fresh(run)


def asks(calls: list[str]) -> Any:
    """Two graphs in each other, a question in the inner one, work before and after it."""

    def did(name: str) -> Any:
        return fn_job(name, lambda ctx: calls.append(name))

    inner = pipeline(
        "inner",
        [
            {"name": "before", "job": did("before")},
            {"name": "ok", "job": approval("ok", "Go on?")},
            {"name": "after", "job": did("after")},
        ],
    )
    return pipeline(
        "outer",
        [
            {"name": "first", "job": did("first")},
            {"name": "middle", "job": inner},
            {"name": "last", "job": did("last")},
        ],
    )


def test_after_a_cancel_nothing_new_is_handed_out() -> None:
    calls: list[str] = []
    run = flows.start(asks(calls))

    cancel(run)
    flows.work(run)
    sweep.advance(run.pk)

    cancelled = flows.fresh(run)
    assert calls == []
    assert cancelled.status == "cancelled"
    assert cancelled.ended_at is not None
    assert cancelled.cancel_requested_at is not None
    assert Attempt.objects.filter(status__in=["ready", "running"]).count() == 0
    assert flows.kinds(run)[-1] == "run:end"
    assert set(flows.statuses(run).values()) == {"cancelled", "idle"}


def test_a_cancel_says_who_asked_for_it_and_why() -> None:
    run = flows.start(asks([]))

    services.cancel_run(run.pk, actor="user:7", surface="api", reason="wrong version")

    asked = flows.events(run, "run:cancel-requested")[0]
    assert (asked.actor, asked.surface, asked.fields["reason"]) == (
        "user:7",
        "api",
        "wrong version",
    )


def test_a_second_cancel_of_a_run_that_is_still_stopping_is_one_fact() -> None:
    run = flows.start(asks([]))
    flows.claimed(run)
    cancel(run)

    cancel(run)

    assert flows.kinds(run).count("run:cancel-requested") == 1
    assert flows.fresh(run).status == "running"


@pytest.mark.django_db(transaction=True)
def test_running_steps_are_told_and_the_run_ends_after_them() -> None:
    both = threading.Barrier(3)

    def body(ctx: Context) -> str:
        both.wait(20)
        assert ctx.signal.wait(20)
        return "stopped in good order"

    job = dag(
        "four",
        {name: fn_job(name, body if name in "ab" else str) for name in "abcd"},
        concurrency=2,
    )
    run = flows.start(job)
    attempts = flows.ready(run)
    assert len(attempts) == 2

    def stop(index: int) -> None:
        if index == 2:
            both.wait(20)
            cancel(run)
        else:
            worker.execute(attempts[index])

    assert flows.at_once(3, stop) == [None] * 3

    kinds = flows.kinds(run)
    assert flows.fresh(run).status == "cancelled"
    assert kinds.count("job:start") == kinds.count("job:end") == 2
    assert kinds.count("run:end") == 1
    assert kinds[-1] == "run:end"
    assert flows.ready(run) == []


def test_a_step_whose_worker_died_after_the_cancel_is_not_asked_about() -> None:
    run = flows.start(asks([]))
    attempt = flows.claimed(run)
    cancel(run)

    sweep.lose(attempt, whatever_the_lease=True)

    assert flows.fresh(run).status == "cancelled"
    assert not flows.events(run, "callback-requested")


@pytest.mark.parametrize("alone", [False, True])
def test_a_resumed_run_asks_what_became_of_a_step_lost_at_the_cancel(*, alone: bool) -> None:
    calls: list[int] = []
    job: Any = fn_job("first", lambda ctx: calls.append(1))
    run = flows.start(job if alone else pipeline("g", [{"name": "first", "job": job}]))
    attempt = flows.claimed(run)
    cancel(run)
    sweep.lose(attempt, whatever_the_lease=True)

    resumed = resume(run)

    assert resumed.display_status == "waiting_for_question"
    assert calls == []
    flows.answer(run, {"action": "run-again"})
    flows.work(run)
    assert calls == [1]
    assert flows.fresh(run).status == "passed"


def test_the_question_of_a_cancelled_run_is_kept_and_its_answer_starts_nothing() -> None:
    calls: list[str] = []
    run = flows.ran(asks(calls))
    cancel(run)
    assert flows.fresh(run).status == "cancelled"

    assert len(flows.pending(run)) == 1
    assert flows.answer(run, {"approved": True}).ok
    flows.work(run)

    assert calls == ["first", "before"]
    assert flows.fresh(run).status == "cancelled"
    assert flows.kinds(run).count("run:end") == 1


def test_a_resumed_run_takes_the_answer_and_repeats_no_step_in_no_graph() -> None:
    calls: list[str] = []
    run = flows.ran(asks(calls))
    cancel(run)
    flows.answer(run, {"approved": True})

    resumed = resume(run)

    assert calls == ["first", "before", "after", "last"]
    assert resumed.status == "passed"
    assert resumed.cancel_requested_at is None
    kinds = flows.kinds(run)
    assert kinds.count("callback-requested") == 1
    assert kinds.count("run:start") == kinds.count("run:end") == 2
    assert [event.fields["session"] for event in flows.events(run, "run:start")] == [1, 2]
    assert kinds.count("dag:start") == 2


def test_a_resumed_run_without_an_answer_waits_on_the_same_question() -> None:
    calls: list[str] = []
    run = flows.ran(asks(calls))
    before = flows.pending(run)[0].request_id
    cancel(run)

    resumed = resume(run)

    assert resumed.status == "waiting"
    assert resumed.ended_at is None
    assert [one.request_id for one in flows.pending(run)] == [before]
    flows.answer(run, {"approved": True})
    flows.work(run)
    assert flows.fresh(run).status == "passed"
    assert calls == ["first", "before", "after", "last"]


def test_resuming_three_times_asks_once() -> None:
    run = flows.ran(asks([]))

    for _ in range(3):
        cancel(run)
        assert resume(run).status == "waiting"

    assert flows.kinds(run).count("callback-requested") == 1


def test_a_run_of_one_job_cancelled_before_it_began_runs_after_a_resume() -> None:
    calls: list[int] = []
    run = flows.start(fn_job("alone", lambda ctx: calls.append(1)))
    cancel(run)
    flows.work(run)
    assert flows.fresh(run).status == "cancelled"
    assert flows.statuses(run) == {"alone": "cancelled"}
    assert flows.ready(run) == []

    resumed = resume(run)

    assert calls == [1]
    assert resumed.status == "passed"
    assert flows.statuses(run) == {"alone": "passed"}


def test_a_question_that_is_the_whole_run_is_kept_too() -> None:
    run = flows.ran(approval("only", "Well?"))
    cancel(run)
    assert flows.fresh(run).status == "cancelled"
    flows.answer(run, {"approved": True})
    assert flows.fresh(run).status == "cancelled"

    assert resume(run).status == "passed"
    assert flows.kinds(run).count("callback-requested") == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("round_", range(10))
def test_a_cancel_and_an_answer_at_the_same_moment(round_: int) -> None:
    calls: list[str] = []
    run = flows.ran(
        pipeline(
            "race",
            [
                {"name": "ok", "job": approval("ok", "Go on?")},
                {"name": "send", "job": fn_job("send", lambda ctx: calls.append("sent"))},
            ],
        )
    )
    request = flows.pending(run)[0]
    client = RecordCallbacks(run.pk, actor="user:2")
    token = client.claim(request.request_id, "user:2").claim_token
    assert token is not None

    def act(index: int) -> object:
        if index:
            return cancel(run)
        return client.submit(
            request.request_id, token, "user:2", request.digest, {"approved": True}
        )

    flows.at_once(2, act)
    flows.work(run)

    assert flows.fresh(run).status == "cancelled"
    assert calls == []
    assert flows.kinds(run).count("callback-submitted") == 1
    assert flows.kinds(run).count("run:end") == 1


def test_an_answer_submitted_by_many_is_taken_once() -> None:
    run = flows.ran(pipeline("once", [{"name": "ok", "job": approval("ok", "Go on?")}]))
    request = flows.pending(run)[0]
    client = RecordCallbacks(run.pk, actor="user:2")
    token = client.claim(request.request_id, "user:2").claim_token
    assert token is not None

    results = [
        client.submit(request.request_id, token, "user:2", request.digest, {"approved": True}).ok
        for _ in range(3)
    ]

    assert results == [True, False, False]
    assert flows.kinds(run).count("callback-submitted") == 1
