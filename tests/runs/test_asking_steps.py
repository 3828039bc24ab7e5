"""Steps that ask, in the service: lost workers, cancels, send-backs, reruns, and many hands."""

from __future__ import annotations

from typing import Any

import pytest

from gates import services as gates
from gates.errors import GateError
from gates.models import Request
from gates.projector import rebuild_requests
from runs import reruns, services, sweep
from runs.drivers.context import Context
from runs.kernel.outcomes import kickback
from runs.kernel.questions import Question
from runs.models import Attempt, Run
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job
from tests import factories, flows
from tests.gates.later import later

pytestmark = pytest.mark.django_db
RED = {"answer": "red"}


def asks(*questions: Any, starts: list[str] | None = None, **options: Any) -> Any:
    """A step that puts each of the questions on a form of its own."""

    def body(ctx: Context) -> str:
        if starts is not None:
            starts.append(ctx.idempotency_key)
        return str([ctx.ask_questions([one], **options) for one in questions])

    return fn_job("build", body)


def flow(job: Any, *after: Any) -> Any:
    return pipeline("p", [{"name": "build", "job": job}, *after])


def answered(run: Run, response: dict[str, Any] = RED) -> None:
    flows.answer(run, response)
    flows.work(run)


def time_is_over(run: Run, hours: int = 1) -> None:
    later(run.pk, 3600 * hours)
    assert sweep.wake_due() == 1


def summary(run: Run) -> Any:
    return flows.events(run, "job:end")[-1].fields["outcome"].get("summary")


def test_each_answer_starts_the_step_once_under_the_same_key() -> None:
    starts: list[str] = []
    run = flows.ran(flow(asks("Which?", "Why?", starts=starts)))
    answered(run)
    answered(run, {"answer": "so"})

    assert flows.fresh(run).status == Run.Status.PASSED
    assert summary(run) == "[['red'], ['so']]"
    assert len(starts) == 3
    assert len(set(starts)) == 1
    assert Attempt.objects.filter(run=run).count() == 3


def test_a_process_that_knows_nothing_goes_on_from_the_record() -> None:
    run = flows.ran(flow(asks("Which?", "Why?")))
    for response in (RED, {"answer": "so"}):
        flows.forget()
        answered(run, response)

    assert summary(run) == "[['red'], ['so']]"


def test_rows_of_questions_made_anew_are_the_same_rows() -> None:
    run = flows.ran(flow(asks("Which?", "Why?")))
    answered(run)
    before = list(Request.objects.filter(run=run).order_by("pk").values())

    assert [row["kind"] for row in before] == ["question", "question"]
    assert rebuild_requests(run) == 0
    assert list(Request.objects.filter(run=run).order_by("pk").values()) == before


def test_a_worker_that_dies_with_the_answers_in_hand_leaves_one_question() -> None:
    run = flows.ran(flow(asks("Which?")))
    flows.answer(run, RED)
    lost = flows.claimed(run)
    sweep.lose(lost, whatever_the_lease=True)
    sweep.advance(run.pk)

    (asked,) = flows.pending(run)
    assert asked.gate_id.startswith("reconcile:")
    flows.answer(run, {"action": "run-again"})
    flows.work(run)
    assert (flows.fresh(run).status, summary(run)) == (Run.Status.PASSED, "[['red']]")


def test_a_cancelled_run_keeps_its_question_and_a_resumed_one_takes_its_answer() -> None:
    run = flows.ran(flow(asks("Which?")))
    services.cancel_run(run.pk, actor="user:0", surface="browser")
    (row,) = Request.objects.filter(run=run)
    assert row.status == Request.Status.CANCELLED
    services.resume_run(run.pk, actor="user:0", surface="browser")
    answered(run)

    assert (flows.fresh(run).status, summary(run)) == (Run.Status.PASSED, "[['red']]")


def test_a_send_back_into_a_step_that_waits_takes_its_question_and_asks_again() -> None:
    def review(ctx: Context) -> Any:
        attempt = ctx.graph.attempt if ctx.graph is not None else 1
        return kickback(to="base", reason="again") if attempt == 1 else "good"

    base = {"name": "base", "job": fn_job("base", lambda _ctx: "base")}
    job = dag(
        "g",
        {
            "base": {"job": base["job"]},
            "build": {"job": asks("Which?"), "needs": ["base"]},
            "review": {
                "job": fn_job("review", review),
                "needs": ["base"],
                "accepts_kickback_to": ["base"],
            },
        },
        max_kickbacks=1,
    )
    run = flows.ran(job)

    assert flows.kinds(run).count("callback-superseded") == 1
    assert flows.kinds(run).count("callback-requested") == 2
    answered(run)
    assert flows.fresh(run).status == Run.Status.PASSED


def test_other_steps_work_while_one_waits() -> None:
    other = {"name": "other", "job": fn_job("other", lambda _ctx: "done")}
    run = flows.ran(dag("g", {"build": {"job": asks("Which?")}, "other": {"job": other["job"]}}))

    assert flows.statuses(run) == {"build": "waiting", "other": "passed"}
    assert run.display_status == "waiting_for_question"


def test_an_answer_on_hold_waits_for_somebody_to_resume() -> None:
    run = flows.ran(flow(asks("Which?", on_answer="hold")))
    answered(run)
    assert flows.fresh(run).status == Run.Status.PAUSED
    services.resume_run(run.pk, actor="user:0", surface="browser")
    flows.work(run)

    assert flows.fresh(run).status == Run.Status.PASSED


def test_who_is_asked_and_how_urgent_it_is() -> None:
    audience = {"users": ["ada"]}
    run = flows.ran(flow(asks("Which?", audience=audience, priority=7, due_in_seconds=3600)))
    (row,) = Request.objects.filter(run=run)

    assert row.priority == 7
    assert row.due_at is not None
    assert [one.token for one in row.audience.tokens.all()] == ["user:ada"]


def test_a_run_asks_a_hundred_questions_and_not_one_more() -> None:
    def body(ctx: Context) -> str:
        return str(len(ctx.ask_questions([f"{number}?" for number in range(20)])))

    nodes = [{"name": f"s{number}", "job": fn_job("s", body)} for number in range(6)]
    run = flows.ran(pipeline("many", nodes))
    for _ in range(5):
        answered(run, {f"answer{number}": "x" for number in range(1, 21)})

    assert flows.fresh(run).status == Run.Status.FAILED
    assert flows.pending(run) == []
    (error,) = flows.events(run, "error")
    assert error.fields["message"] == "a run asks at most 100 questions."


def test_a_withdrawn_question_fails_its_step() -> None:
    run = flows.ran(flow(asks("Which?")))
    (row,) = Request.objects.filter(run=run)
    gates.withdraw(row.pk, principal=factories.operator(), reason="nobody knows")
    flows.work(run)

    assert flows.fresh(run).status == Run.Status.FAILED
    assert "nobody knows" in str(flows.events(run, "error")[-1].fields["message"])


def test_nobody_answered_in_time_fails_the_step() -> None:
    run = flows.ran(flow(asks("Which?", expires_in_seconds=3600)))
    time_is_over(run)

    assert flows.fresh(run).status == Run.Status.FAILED
    assert "nobody answered" in str(flows.events(run, "error")[-1].fields["message"])


def test_a_default_answer_counts_where_nobody_gave_one() -> None:
    time: dict[str, Any] = {
        "expires_in_seconds": 3600,
        "on_expiry": "answer",
        "default_answer": RED,
    }
    run = flows.ran(flow(asks("Which?", "Why?", **time)))
    for hours in (1, 2):
        time_is_over(run, hours)
        flows.forget()
        flows.work(run)

    assert (flows.fresh(run).status, summary(run)) == (Run.Status.PASSED, "[['red'], ['red']]")
    assert "callback-submitted" not in flows.kinds(run)
    assert flows.kinds(run).count("step:ready") == 2


def test_a_default_that_answers_nothing_is_refused_at_once() -> None:
    time: dict[str, Any] = {
        "expires_in_seconds": 3600,
        "on_expiry": "answer",
        "default_answer": {"answer": " "},
    }
    run = flows.ran(flow(asks("Which?", **time)))

    assert (flows.fresh(run).status, flows.pending(run)) == (Run.Status.FAILED, [])
    assert "default_answer 'answer'" in str(flows.events(run, "error")[0].fields["message"])


def test_a_question_that_is_escalated_is_answered_by_the_next() -> None:
    time: dict[str, Any] = {
        "expires_in_seconds": 3600,
        "on_expiry": "escalate",
        "escalate_to": {"users": ["oda"]},
    }
    run = flows.ran(flow(asks("Which?", audience={"users": ["ada"]}, **time)))
    time_is_over(run)
    (row,) = Request.objects.filter(run=run)
    assert [one.token for one in row.audience.tokens.all()] == ["user:oda"]
    answered(run)

    assert flows.fresh(run).status == Run.Status.PASSED


def test_a_run_that_is_run_again_asks_only_what_changed() -> None:
    second = ["Why?"]

    def body(ctx: Context) -> str:
        return str([ctx.ask_questions([Question(one)]) for one in ("Which?", *second)])

    job = flow(fn_job("build", body))
    run = flows.ran(job, name="again")
    answered(run)
    answered(run, {"answer": "so"})
    assert flows.fresh(run).status == Run.Status.PASSED
    same = reruns.rerun(run.pk, actor="user:9")
    flows.work(same)
    second[0] = "Why not?"
    changed = reruns.rerun(run.pk, actor="user:9")
    flows.work(changed)

    assert (flows.fresh(same).status, summary(same)) == (Run.Status.PASSED, "[['red'], ['so']]")
    assert [one.decision_text for one in flows.pending(changed)] == ["Why not?"]


@pytest.mark.django_db(transaction=True)
def test_of_many_answers_at_once_one_counts_and_goes_on_once() -> None:
    for _ in range(10):
        run = flows.ran(flow(asks("Which?")))
        (row,) = Request.objects.filter(run=run)
        people = [factories.operator() for _ in range(6)]

        def answer(number: int, row: Request = row, people: list[Any] = people) -> Any:
            return gates.submit(
                row.pk,
                principal=people[number],
                token=None,
                digest=row.digest,
                response={"answer": f"number {number}"},
            )

        told = flows.at_once(6, answer)

        assert len([one for one in told if not isinstance(one, GateError)]) == 1
        assert len(flows.ready(run)) == 1
        assert flows.kinds(run).count("step:ready") == 1
        flows.work(run)
        assert flows.fresh(run).status == Run.Status.PASSED
