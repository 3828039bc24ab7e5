"""Calls of tools in the service: who is asked, what runs, and that it runs once."""

from __future__ import annotations

from typing import Any

import pytest

from gates.models import Grant, Request
from gates.projector import rebuild_requests
from runs import services, sweep
from runs.drivers.context import Context
from runs.kernel.outcomes import kickback
from runs.kernel.retries import RetryPolicy
from runs.kernel.tool_errors import ToolFailed, ToolRefused
from runs.models import Run
from runs.shapes.dag import dag, pipeline
from runs.shapes.steps import fn_job
from tests import factories, flows
from tests.acting import (
    CONVERSATION,
    DENY,
    FIRST,
    ONCE,
    Downstream,
    calling,
    flow,
    publish_post,
)
from tests.gates.later import later

pytestmark = pytest.mark.django_db
LINK = '[{"url":"https://example.com/d1"}]'


@pytest.fixture
def downstream() -> Downstream:
    made = Downstream()
    publish_post(made)
    return made


def decided(run: Run, response: dict[str, Any]) -> Run:
    flows.answer(run, response)
    flows.work(run)
    return flows.fresh(run)


def summary(run: Run) -> Any:
    return flows.events(run, "job:end")[-1].fields["outcome"].get("summary")


def message(run: Run) -> str:
    error = flows.events(run, "job:end")[-1].fields["outcome"]["error"]
    return str(error["message"])


def about_actions(run: Run) -> list[str]:
    starts = ("approval.", "tool.", "grant.")
    return [kind for kind in flows.kinds(run) if kind.startswith(starts)]


def test_a_call_waits_for_a_yes_and_then_runs_once_as_it_was_stored(downstream: Downstream) -> None:
    starts: list[str] = []
    run = flows.ran(calling(FIRST, starts=starts))

    assert (run.status, run.waiting_on) == (Run.Status.WAITING, ["approval"])
    assert run.display_status == "waiting_for_approval"
    (row,) = Request.objects.filter(run=run)
    assert row.kind == Request.Kind.APPROVAL
    assert row.input["input"] == {"draft_id": "d1", "channel": "linkedin"}
    assert row.input["cost"] == {"minorUnits": 250, "currency": "EUR"}
    assert row.expires_at is not None
    assert (row.expires_at - row.created_at).total_seconds() == 86_400
    assert downstream.sent == []

    run = decided(run, ONCE)
    assert (run.status, summary(run)) == (Run.Status.PASSED, LINK)
    assert downstream.sent == [(row.input["idempotencyKey"], row.input["input"])]
    assert about_actions(run) == [
        "approval.requested",
        "approval.decided",
        "tool.reserved",
        "tool.started",
        "tool.completed",
    ]
    assert len(starts) == 2
    assert Grant.objects.count() == 0


def test_the_same_call_again_gets_the_stored_result_and_asks_nobody(
    downstream: Downstream,
) -> None:
    run = decided(flows.ran(calling(FIRST, FIRST)), ONCE)

    assert summary(run) == f"{LINK[:-1]},{LINK[1:]}"
    assert len(downstream.sent) == 1
    assert Request.objects.filter(run=run).count() == 1


def test_another_input_is_another_question(downstream: Downstream) -> None:
    # Their 32-bit hashes are equal; their keys are not.
    run = flows.ran(calling({"draft_id": "d562789"}, {"draft_id": "d779192"}))
    run = decided(run, ONCE)

    assert run.waiting_on == ["approval"]
    first, second = Request.objects.filter(run=run).order_by("asked_seq")
    assert first.input["idempotencyKey"] != second.input["idempotencyKey"]
    assert len(downstream.sent) == 1


def test_a_denied_call_runs_never_and_is_not_asked_about_again(downstream: Downstream) -> None:
    def body(ctx: Context) -> str:
        said = []
        for _ in range(2):
            try:
                ctx.call_tool("publish_post", FIRST)
            except ToolRefused as refused:
                said.append(refused.reason)
        return " ".join(said)

    run = flows.ran(flow(fn_job("publish", body)))
    run = decided(run, {**DENY, "note": "not this week"})

    assert summary(run) == "approval_denied approval_denied"
    assert downstream.sent == []
    assert Request.objects.filter(run=run).count() == 1
    # In the next run it is a new call.
    assert flows.ran(flow(fn_job("publish", body))).waiting_on == ["approval"]


def test_a_no_tells_the_step_who_said_it_and_why(downstream: Downstream) -> None:
    run = decided(flows.ran(calling(FIRST)), {**DENY, "note": "not this week"})

    assert run.status == Run.Status.FAILED
    assert message(run) == "approval_denied: user:2 said no: not this week"


def test_an_approval_nobody_gave_in_time_expires_and_can_be_asked_for_again(
    downstream: Downstream,
) -> None:
    def body(ctx: Context) -> str:
        first = ctx.try_tool("publish_post", FIRST)
        return str(ctx.call_tool("publish_post", FIRST) if "code" in first else first)

    run = flows.ran(flow(fn_job("publish", body)))
    later(run.pk, 86_400)
    assert sweep.wake_due() == 1
    flows.work(run)

    old, new = Request.objects.filter(run=run).order_by("asked_seq")
    assert (old.status, new.status) == ("expired", "pending")
    assert old.input["idempotencyKey"] == new.input["idempotencyKey"]
    assert Grant.objects.count() == 0
    assert decided(run, ONCE).status == Run.Status.PASSED
    assert len(downstream.sent) == 1


def test_a_yes_that_nobody_used_in_its_time_runs_nothing(downstream: Downstream) -> None:
    run = flows.ran(calling(FIRST))
    flows.answer(run, ONCE)
    later(run.pk, 900)
    flows.work(run)

    assert flows.fresh(run).status == Run.Status.FAILED
    assert message(run).startswith("approval_expired")
    assert downstream.sent == []


@pytest.mark.parametrize("changed", [{"version": 2}, {"effect": "destructive"}])
def test_a_tool_that_changed_after_the_yes_runs_nothing(
    downstream: Downstream, changed: dict[str, Any]
) -> None:
    run = flows.ran(calling(FIRST))
    flows.answer(run, ONCE)
    publish_post(downstream, **changed)
    flows.work(run)

    assert message(run).startswith("approval_stale")
    assert downstream.sent == []
    assert "tool.refused" in about_actions(run)


def test_an_input_that_does_not_fit_asks_nobody(downstream: Downstream) -> None:
    run = flows.ran(calling({"draft": "d1"}))

    assert run.status == Run.Status.FAILED
    assert message(run).startswith("invalid_input")
    assert Request.objects.count() == 0


def test_what_a_look_before_finds_asks_nobody(downstream: Downstream) -> None:
    def look(given: Any) -> None:
        raise ToolFailed(f"there is no draft {given['draft_id']}.", reason="not_found")

    publish_post(downstream, preflight=look)
    run = flows.ran(calling(FIRST))

    assert message(run) == "there is no draft d1."
    assert Request.objects.count() == 0


def test_a_dry_run_records_what_it_would_do_and_asks_nobody(downstream: Downstream) -> None:
    run = flows.ran(calling(FIRST), dry_run=True)

    assert run.status == Run.Status.PASSED
    assert about_actions(run) == ["tool.suppressed"]
    assert downstream.sent == []
    assert Request.objects.count() == 0


def test_a_dry_call_does_not_answer_the_real_one(downstream: Downstream) -> None:
    def body(ctx: Context) -> str:
        ctx.call_tool("publish_post", FIRST, dry_run=True)
        return str(ctx.call_tool("publish_post", FIRST))

    run = flows.ran(flow(fn_job("publish", body)))

    assert run.waiting_on == ["approval"]


def test_work_that_is_sent_back_is_asked_about_anew(downstream: Downstream) -> None:
    """The question of the attempt before is over, whatever came of it."""

    def body(ctx: Context) -> str:
        assert ctx.graph is not None
        if ctx.graph.attempt > 1:
            return str(ctx.call_tool("publish_post", FIRST))
        found = ctx.try_tool("publish_post", FIRST)
        return str(found["code"])

    def review(ctx: Context) -> Any:
        assert ctx.graph is not None
        return "good" if ctx.graph.attempt > 1 else kickback(to="publish", reason="late")

    job = pipeline(
        "p",
        [
            {"name": "publish", "job": fn_job("publish", body)},
            {
                "name": "review",
                "job": fn_job("review", review),
                "accepts_kickback_to": ["publish"],
            },
        ],
        max_kickbacks=1,
    )
    run = flows.ran(job)
    later(run.pk, 86_400)
    assert sweep.wake_due() == 1
    flows.work(run)

    old, new = Request.objects.filter(run=run).order_by("asked_seq")
    assert (old.status, new.status) == ("expired", "pending")
    assert decided(run, ONCE).status == Run.Status.PASSED


def test_a_failure_that_may_pass_is_tried_again_under_the_same_yes(
    downstream: Downstream,
) -> None:
    downstream.fails = [ToolFailed("too many", reason="rate_limited")]

    def body(ctx: Context) -> str:
        return str(ctx.call_tool("publish_post", FIRST))

    retry = RetryPolicy(max_attempts=3, base_delay_ms=1, max_delay_ms=1)
    run = flows.ran(flow(fn_job("publish", body, retry=retry)))
    run = decided(run, ONCE)
    flows.wake(run)
    flows.work(run)

    assert flows.fresh(run).status == Run.Status.PASSED
    assert len(downstream.sent) == 1
    assert about_actions(run).count("approval.requested") == 1


def test_a_failure_that_lasts_is_stored_under_its_key(downstream: Downstream) -> None:
    downstream.fails = [ValueError("no such page")]

    def body(ctx: Context) -> str:
        said = []
        for _ in range(2):
            try:
                ctx.call_tool("publish_post", FIRST)
            except ToolFailed as failed:
                said.append(f"{failed.reason}: {failed.message}")
        return "; ".join(said)

    run = decided(flows.ran(flow(fn_job("publish", body))), ONCE)

    assert summary(run) == "internal: ValueError: no such page; internal: ValueError: no such page"
    assert downstream.sent == []


def test_a_cancel_before_the_worker_starts_leaves_the_call_unmade(downstream: Downstream) -> None:
    run = flows.ran(calling(FIRST))
    flows.answer(run, ONCE)
    services.cancel_run(run.pk, actor="user:0", surface="browser")
    flows.work(run)

    assert flows.fresh(run).status == Run.Status.CANCELLED
    assert downstream.sent == []
    assert "tool.reserved" not in about_actions(run)


def test_a_cancel_while_the_call_is_under_way_keeps_its_result(downstream: Downstream) -> None:
    run = flows.ran(calling(FIRST))
    flows.answer(run, ONCE)
    downstream.before = lambda: services.cancel_run(run.pk, actor="user:0", surface="browser")
    flows.work(run)

    assert flows.fresh(run).status == Run.Status.CANCELLED
    assert len(downstream.sent) == 1
    assert "tool.completed" in about_actions(run)


def test_a_step_cannot_give_itself_the_yes(downstream: Downstream) -> None:
    def body(ctx: Context) -> str:
        asked = next(iter(ctx.callbacks.list_pending()))
        return str(ctx.callbacks.claim(asked.request_id, "me"))

    publish = fn_job("publish", lambda ctx: str(ctx.call_tool("publish_post", FIRST)))
    both = {"publish": {"job": publish}, "own": {"job": fn_job("own", body)}}
    run = flows.ran(dag("g", both, concurrency=1, stop_on_error=False))

    assert flows.statuses(run) == {"publish": "waiting", "own": "failed"}
    assert Request.objects.get(run=run).status == "pending"
    assert downstream.sent == []


def test_whoever_lost_the_permission_since_runs_nothing(downstream: Downstream) -> None:
    ada = factories.person("ada", perms=["gates.view_request"])
    publish_post(downstream, permission="gates.view_request")
    run = flows.ran(calling(FIRST), actor=ada.actor)
    flows.answer(run, ONCE)
    assert ada.user is not None
    ada.user.user_permissions.clear()
    flows.work(run)

    assert message(run).startswith("forbidden")
    assert downstream.sent == []
    (refused,) = flows.events(run, "tool.refused")
    assert (refused.fields["tool"], refused.fields["code"]) == ("publish_post", "forbidden")


def test_a_tool_one_may_not_use_is_refused_as_if_it_was_not_there(downstream: Downstream) -> None:
    publish_post(downstream, permission="gates.view_request")
    run = flows.ran(calling(FIRST), actor=factories.cyd().actor)
    unknown = flows.ran(flow(fn_job("publish", lambda ctx: str(ctx.call_tool("unknown", {})))))

    said = message(run).replace("publish_post", "X"), message(unknown).replace("unknown", "X")
    assert said[0] == said[1]
    assert Request.objects.count() == 0


def test_rows_made_anew_are_the_same_rows(downstream: Downstream) -> None:
    run = decided(flows.ran(calling(FIRST), conversation="c1"), CONVERSATION)
    before = list(Request.objects.filter(run=run).values())
    from gates.actions import grants

    assert rebuild_requests(run) == 0
    assert list(Request.objects.filter(run=run).values()) == before
    assert grants.rebuild(run) == 0
    Grant.objects.all().delete()
    assert grants.rebuild(run) == 1
