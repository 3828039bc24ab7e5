"""Standing grants in the service: what a yes for more than one call lets run, and what not."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings

from gates.actions import grants
from gates.models import Grant, Request
from runs.archive import imports
from runs.models import Run
from tests import factories, flows
from tests.acting import ALWAYS, CONVERSATION, FIRST, Downstream, calling, publish_post
from tests.runs.test_actions import decided, downstream, message
from tests.runs.test_export import exported

__all__ = ["downstream"]

pytestmark = pytest.mark.django_db


def offered(run: Run) -> Any:
    """The decisions that the run's open question lists."""
    schema: Any = flows.pending(run)[0].to_wire()["responseSchema"]
    return schema["properties"]["decision"]["enum"]


def test_a_yes_for_the_conversation_lets_its_later_calls_run_unasked(
    downstream: Downstream,
) -> None:
    run = decided(flows.ran(calling(FIRST), conversation="c1"), CONVERSATION)
    (grant,) = Grant.objects.all()
    second = flows.ran(calling({"draft_id": "d2"}), conversation="c1")

    assert run.status == second.status == Run.Status.PASSED
    assert (grant.scope, grant.conversation, grant.match_value) == (
        "conversation",
        "c1",
        "publish_post",
    )
    assert (grant.granted_by, grant.source_request_id) == (
        "user:2",
        Request.objects.get().request_id,
    )
    reserved = flows.events(second, "tool.reserved")[0]
    assert reserved.fields["grantId"] == str(grant.pk)
    assert len(downstream.sent) == 2


@pytest.mark.parametrize(
    ("conversation", "actor"), [("c2", flows.STARTER), ("", flows.STARTER), ("c1", "user:9")]
)
def test_a_grant_covers_no_other_conversation_and_nobody_else(
    downstream: Downstream, conversation: str, actor: str
) -> None:
    decided(flows.ran(calling(FIRST), conversation="c1"), CONVERSATION)
    run = flows.ran(calling(FIRST), conversation=conversation, actor=actor)

    assert run.waiting_on == ["approval"]
    assert len(downstream.sent) == 1


def test_without_a_conversation_it_is_neither_offered_nor_taken(downstream: Downstream) -> None:
    run = flows.ran(calling(FIRST))

    assert offered(run) == ["allow_once", "deny"]
    assert not flows.answer(run, CONVERSATION).ok
    assert Grant.objects.count() == 0


def test_a_revoked_grant_asks_again_from_the_next_call_on(downstream: Downstream) -> None:
    decided(flows.ran(calling(FIRST), conversation="c1"), CONVERSATION)
    (grant,) = Grant.objects.all()
    revoked = grants.revoke(grant.pk, principal=factories.operator())
    again = grants.revoke(grant.pk, principal=factories.operator())

    assert revoked.revoked_at == again.revoked_at is not None
    run = flows.ran(calling(FIRST), conversation="c1")
    assert run.waiting_on == ["approval"]


def test_a_tool_that_always_asks_takes_no_grant(downstream: Downstream) -> None:
    decided(flows.ran(calling(FIRST), conversation="c1"), CONVERSATION)
    publish_post(downstream, approval_policy="always")
    run = flows.ran(calling(FIRST), conversation="c1")

    assert run.waiting_on == ["approval"]
    assert offered(run) == ["allow_once", "deny"]


def test_always_is_offered_where_the_policy_permits_and_holds_for_that_person(
    downstream: Downstream, settings: LazySettings
) -> None:
    settings.OBVERSA_STANDING_GRANTS = ["publish:medium"]
    run = decided(flows.ran(calling(FIRST)), ALWAYS)
    (grant,) = Grant.objects.all()

    assert (grant.scope, grant.principal) == ("principal", flows.STARTER)
    assert grant.expires_at is not None
    assert (grant.expires_at - grant.granted_at).days == 90
    assert run.status == flows.ran(calling(FIRST)).status == Run.Status.PASSED
    assert flows.ran(calling(FIRST), actor="user:9").waiting_on == ["approval"]


def test_a_policy_that_was_narrowed_since_executes_nothing(
    downstream: Downstream, settings: LazySettings
) -> None:
    settings.OBVERSA_STANDING_GRANTS = ["publish:medium"]
    run = flows.ran(calling(FIRST))
    flows.answer(run, ALWAYS)
    settings.OBVERSA_STANDING_GRANTS = []
    flows.work(run)

    assert message(run).startswith("forbidden")
    assert downstream.sent == []


def test_a_grant_in_a_record_from_elsewhere_lets_nothing_run(downstream: Downstream) -> None:
    run = decided(flows.ran(calling(FIRST), conversation="c1"), CONVERSATION)
    lines = exported(run)
    beside = imports.import_run(lines)
    assert Grant.objects.get().run == run
    Grant.objects.all().delete()
    copy = imports.import_run(lines)

    assert not Grant.objects.filter(run=beside).exists()
    (grant,) = Grant.objects.filter(run=copy)
    assert grant.revoked_by == "import"
    assert flows.ran(calling(FIRST), conversation="c1").waiting_on == ["approval"]
    assert grants.rebuild(copy) == 0
