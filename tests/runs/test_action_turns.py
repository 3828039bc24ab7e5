"""Several calls of one turn, and calls that do not wait."""

from __future__ import annotations

from typing import Any

import pytest

from gates.models import Request
from runs import services, sweep
from runs.drivers.context import Context
from runs.models import Run
from runs.shapes.dag import dag
from runs.shapes.steps import fn_job
from tests import flows
from tests.acting import DENY, FIRST, ONCE, Downstream, calling, flow
from tests.gates.later import later
from tests.runs.test_actions import decided, downstream, summary

__all__ = ["downstream"]

pytestmark = pytest.mark.django_db


def test_calls_of_one_turn_are_asked_together_and_go_on_when_all_are_decided(
    downstream: Downstream,
) -> None:
    asked = [{"name": "publish_post", "input": {"draft_id": f"d{number}"}} for number in range(3)]
    told: list[Any] = []

    def body(ctx: Context) -> str:
        told[:] = ctx.call_tools(asked)
        return "told"

    run = flows.ran(flow(fn_job("publish", body)))
    rows = list(Request.objects.filter(run=run).order_by("asked_seq"))
    assert [row.input["input"]["draft_id"] for row in rows] == ["d0", "d1", "d2"]
    for row, response in zip(rows[:2], (ONCE, DENY), strict=True):
        flows.answer(run, response, request_id=row.request_id)
        flows.work(run)
        assert downstream.sent == []
    later(run.pk, 86_400)
    sweep.wake_due()
    flows.work(run)

    assert flows.fresh(run).status == Run.Status.PASSED
    assert [one.get("code", one["status"]) for one in told] == [
        "succeeded",
        "approval_denied",
        "approval_expired",
    ]


def test_a_run_waits_for_the_first_call_when_the_last_is_decided(downstream: Downstream) -> None:
    asked = [{"name": "publish_post", "input": {"draft_id": f"d{number}"}} for number in range(2)]
    run = flows.ran(flow(fn_job("publish", lambda ctx: str(len(ctx.call_tools(asked))))))
    first, second = Request.objects.filter(run=run).order_by("asked_seq")
    flows.answer(run, ONCE, request_id=second.request_id)
    flows.work(run)

    assert flows.fresh(run).status == Run.Status.WAITING
    assert downstream.sent == []
    flows.answer(run, ONCE, request_id=first.request_id)
    flows.work(run)
    assert flows.fresh(run).status == Run.Status.PASSED
    assert len(downstream.sent) == 2


def test_a_yes_in_time_beside_a_no_runs_that_one_call(downstream: Downstream) -> None:
    asked = [{"name": "publish_post", "input": {"draft_id": f"d{number}"}} for number in range(2)]
    told: list[Any] = []

    def body(ctx: Context) -> str:
        told[:] = ctx.call_tools(asked)
        return "told"

    run = flows.ran(flow(fn_job("publish", body)))
    first, second = Request.objects.filter(run=run).order_by("asked_seq")
    flows.answer(run, DENY, request_id=first.request_id)
    decided(run, ONCE)

    assert [one["status"] for one in told] == ["refused", "succeeded"]
    assert downstream.keys == [second.input["idempotencyKey"]]


def test_a_call_that_only_reports_goes_on_and_runs_nothing(downstream: Downstream) -> None:
    run = flows.ran(calling(FIRST, on_approval="report"))

    assert run.status == Run.Status.PASSED
    assert '"status":"approval_required"' in summary(run)
    assert downstream.sent == []
    assert Request.objects.get(run=run).status == "pending"


def test_two_branches_with_the_same_call_wait_for_one_yes(downstream: Downstream) -> None:
    def step(name: str) -> dict[str, Any]:
        return {"job": fn_job(name, lambda ctx: str(ctx.call_tool("publish_post", FIRST)))}

    run = flows.ran(dag("g", {"a": step("a"), "b": step("b")}))

    assert Request.objects.filter(run=run).count() == 1
    assert flows.statuses(run) == {"a": "waiting", "b": "waiting"}
    run = decided(run, ONCE)
    assert run.status == Run.Status.PASSED
    assert len(downstream.sent) == 1


def test_an_answer_given_while_a_run_was_cancelled_counts_when_it_is_resumed(
    downstream: Downstream,
) -> None:
    run = flows.ran(calling(FIRST))
    services.cancel_run(run.pk, actor="user:0", surface="browser")
    flows.answer(run, ONCE)
    flows.work(run)
    assert downstream.sent == []

    services.resume_run(run.pk, actor="user:0", surface="browser")
    flows.work(run)
    assert flows.fresh(run).status == Run.Status.PASSED
    assert len(downstream.sent) == 1
