"""Actions under many hands: one decision, one execution, and a cancel at the same instant."""

from __future__ import annotations

import os
from typing import Any

import pytest
from django.db import connection

from gates import services as gates
from gates.errors import AlreadyAnswered, GateError
from gates.models import Grant, Request
from runs import services
from runs.drivers.context import Context
from runs.models import Run
from runs.shapes.dag import dag
from runs.shapes.steps import fn_job
from tests import factories, flows
from tests.acting import DENY, FIRST, ONCE, Downstream, calling, publish_post

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = int(os.environ.get("OBVERSA_TEST_RACE_ROUNDS", "5"))
HANDS = 100


@pytest.fixture
def downstream() -> Downstream:
    made = Downstream()
    publish_post(made, audience={"users": [f"hand-{number}" for number in range(8)]})
    return made


def test_of_many_decisions_at_once_one_counts_and_runs_once(downstream: Downstream) -> None:
    hands = [factories.person(f"hand-{number}") for number in range(8)]
    run = flows.ran(calling(FIRST))
    row = Request.objects.get(run=run)

    def decide(index: int) -> Any:
        response = ONCE if index % 2 else DENY
        who = hands[index]
        return gates.submit(row.pk, principal=who, token=None, digest=row.digest, response=response)

    results = flows.at_once(8, decide)
    flows.work(run)

    won = [one for one in results if not isinstance(one, Exception)]
    assert len(won) == 1
    assert all(isinstance(one, GateError) for one in results if one not in won)
    decided = [event.fields["decision"] for event in flows.events(run, "approval.decided")]
    assert decided == [won[0].response["decision"]]
    assert len(downstream.sent) == int(decided == ["allow_once"])


@pytest.mark.timeout(300)
def test_of_a_hundred_decisions_at_once_one_counts_and_runs_once_a9() -> None:
    downstream = Downstream()
    names = [f"hand-{number}" for number in range(HANDS)]
    publish_post(downstream, audience={"users": names})
    hands = [factories.person(name) for name in names]
    assert all(who.tokens for who in hands)
    run = flows.ran(calling(FIRST))
    row = Request.objects.get(run=run)

    def decide(index: int) -> Any:
        who, response = hands[index], {**(ONCE, DENY)[index % 2], "note": f"by {index}"}
        try:
            return gates.submit(
                row.pk, principal=who, token=None, digest=row.digest, response=response
            )
        finally:
            # There are more hands than connections.
            connection.close()

    results = flows.at_once(HANDS, decide)
    flows.work(run)

    (won,) = [one for one in results if not isinstance(one, Exception)]
    lost = [one for one in results if isinstance(one, AlreadyAnswered)]
    assert len(lost) == HANDS - 1
    assert all(one.details["response"] == won.response for one in lost)
    (decided,) = flows.events(run, "approval.decided")
    assert (decided.fields["decision"], decided.fields["note"]) == (
        won.response["decision"],
        won.response["note"],
    )
    ran = int(won.response["decision"] == "allow_once")
    assert len(downstream.sent) == len(flows.events(run, "tool.completed")) == ran
    assert flows.kinds(run).count("callback-submitted") == 1
    assert not Grant.objects.exists()


def test_a_cancel_and_a_yes_at_once_leave_no_call_unrecorded(downstream: Downstream) -> None:
    who = factories.person("hand-0")
    for _ in range(ROUNDS):
        run = flows.ran(calling(FIRST))
        row = Request.objects.get(run=run)
        downstream.sent.clear()

        def act(index: int, run: Run = run, row: Request = row) -> Any:
            if index:
                services.cancel_run(run.pk, actor="user:0", surface="browser")
            else:
                gates.submit(row.pk, principal=who, token=None, digest=row.digest, response=ONCE)
            flows.work(run)
            return None

        flows.at_once(2, act)
        flows.work(run)

        assert flows.fresh(run).status in (Run.Status.CANCELLED, Run.Status.PASSED)
        done = len(flows.events(run, "tool.completed"))
        assert len(downstream.sent) == done <= 1


def test_two_steps_that_make_the_same_call_at_once_make_it_once(downstream: Downstream) -> None:
    publish_post(downstream, approval_policy="never", category="")

    def body(ctx: Context) -> str:
        return str(ctx.try_tool("publish_post", FIRST).get("code", "done"))

    both = {name: {"job": fn_job(name, body)} for name in ("a", "b")}
    for _ in range(ROUNDS):
        downstream.sent.clear()
        run = flows.start(dag("g", both))
        first, second = flows.ready(run)

        def make(index: int, attempts: tuple[int, int] = (first, second)) -> None:
            from runs.attempts import worker

            worker.execute(attempts[index])

        flows.at_once(2, make)
        flows.work(run)

        said = [event.fields["outcome"]["summary"] for event in flows.events(run, "job:end")]
        assert sorted(said) in (["conflict", "done"], ["done", "done"])
        assert len(downstream.sent) == 1
