"""In an emergency: a person with the permission answers what others were asked, and says why."""

from __future__ import annotations

from typing import Any

import pytest

from gates import services
from gates.access import Forbidden
from gates.errors import AlreadyAnswered, AnswerRefused, ReasonMissing, StaleDigest
from gates.models import Grant, Request
from gates.principals import Principal
from gates.projector import rebuild_requests
from runs import services as runs_services
from runs.models import Event
from tests import factories, flows
from tests.acting import CONVERSATION, FIRST, ONCE, Downstream, calling, publish_post
from tests.gates.test_pages_findings import asked_by_a_flow
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db
YES: dict[str, Any] = {"approved": True}
PERMS = ["gates.view_request", "runs.view_run", "gates.break_glass"]


def rescuer() -> Principal:
    return factories.person("rex", perms=PERMS)


def break_glass(gate: Request, who: Principal | None = None, **more: Any) -> services.Receipt:
    given = {"digest": gate.digest, "response": YES, "reason": "the site is down", **more}
    return services.break_glass(gate.pk, principal=who or rescuer(), **given)


def is_marked(gate: Request) -> None:
    gate = Request.objects.select_related("run").get(pk=gate.pk)
    assert (gate.status, gate.how, gate.run.overridden) == ("answered", "overridden", True)
    assert gate.routing["override"]["by"] == rescuer().actor
    assert gate.routing["override"]["reason"] == "the site is down"
    assert rebuild_requests(gate.run) == 0


def test_somebody_who_was_not_asked_answers_and_the_reason_is_an_event_of_its_own() -> None:
    gate = factories.pending_gate()

    assert break_glass(gate).next == "resumed"

    is_marked(gate)
    told = Event.objects.get(run=gate.run, kind="callback-overridden")
    assert (told.actor, told.payload["reason"]) == (rescuer().actor, "the site is down")
    assert factories.event_kinds(gate.run)[-3:] == [
        "callback-overridden",
        "callback-claimed",
        "callback-submitted",
    ]
    [ended] = flows.events(gate.run, "job:end")
    assert ended.fields["outcome"]["data"] == {"approved": True, "how": "overridden"}


def test_a_step_whose_input_is_computed_says_so_as_well() -> None:
    run = flows.start(factories.release_job(input=lambda ctx: {"revision": "abc"}))
    flows.work(run)
    gate = Request.objects.get(run=run)

    break_glass(gate)
    flows.work(run)

    ended = flows.events(run, "job:end")[0]
    assert ended.fields["outcome"]["data"] == {"approved": True, "how": "overridden"}


def test_it_goes_over_the_heads_of_the_holder_and_of_those_who_are_missing() -> None:
    gate = factories.pending_gate(needed=2, audience={"groups": ["Team"]})
    services.submit(
        gate.pk,
        principal=factories.person("ada", groups=["Team"]),
        token=None,
        digest=gate.digest,
        response=YES,
    )
    services.claim(gate.pk, principal=factories.person("eve", groups=["Team"]))

    break_glass(gate)

    is_marked(gate)
    told = Event.objects.get(run=gate.run, kind="callback-overridden").payload
    assert (told["needed"], told["responded"]) == (2, 1)
    assert [row.overrides for row in gate.responses.all()] == [False, True]


def test_who_has_answered_may_still_override_the_others() -> None:
    gate = factories.pending_gate(needed=2, audience={"users": ["rex", "ada"]})
    services.submit(gate.pk, principal=rescuer(), token=None, digest=gate.digest, response=YES)

    break_glass(gate)

    is_marked(gate)
    assert gate.responses.count() == 2


def test_who_asked_may_in_an_emergency() -> None:
    job = factories.release_job(exclude_requester=True)
    gate = factories.pending_gate(factories.make_run(job, started_by=rescuer().actor))

    break_glass(gate)

    is_marked(gate)


@pytest.mark.parametrize("who", ["ben", "operator", "asked"])
def test_without_the_permission_nobody_does_and_it_is_recorded(who: str) -> None:
    gate = factories.pending_gate()
    caller = {"ben": factories.ben, "operator": factories.operator, "asked": factories.ada}[who]()

    with pytest.raises(Forbidden):
        break_glass(gate, caller)

    gate.refresh_from_db()
    assert gate.status == "pending"
    assert factories.event_kinds(gate.run)[-1] == "callback-refused"


def test_a_key_never_does_not_even_that_of_somebody_who_may() -> None:
    gate = factories.pending_gate()

    for key in (
        factories.key("own", ["read", "answer", "operate"], user=rescuer().user),
        factories.key("root", ["read", "start", "claim", "answer", "operate"]),
    ):
        with pytest.raises(Forbidden, match="signed in"):
            break_glass(gate, key)


@pytest.mark.parametrize("reason", ["", "  ", "x" * 2_001])
def test_it_takes_a_reason(reason: str) -> None:
    with pytest.raises(ReasonMissing):
        break_glass(factories.pending_gate(), reason=reason)


def test_the_answer_has_to_be_one_and_for_this_question() -> None:
    gate = factories.pending_gate()

    with pytest.raises(AnswerRefused):
        break_glass(gate, response={"approved": "yes"})
    with pytest.raises(StaleDigest):
        break_glass(gate, digest="0" * 64)

    gate.refresh_from_db()
    assert (gate.status, gate.how, gate.run.overridden) == ("pending", "", False)


def test_what_is_answered_stays_so() -> None:
    gate = factories.pending_gate()
    services.submit(
        gate.pk, principal=factories.ada(), token=None, digest=gate.digest, response=YES
    )

    with pytest.raises(AlreadyAnswered):
        break_glass(gate, response={"approved": False})

    gate.refresh_from_db()
    assert (gate.how, gate.run.overridden) == ("answered", False)


def action() -> Request:
    publish_post(Downstream(), audience=factories.FOR_ADA)
    name = flows.offer(calling(FIRST), audience=factories.FOR_ADA)
    run = runs_services.start_run(name, actor="user:777", conversation="c1")
    flows.work(run)
    return Request.objects.select_related("run").get(run=run)


def test_an_action_is_allowed_once_in_an_emergency_and_for_no_longer() -> None:
    gate = action()

    with pytest.raises(AnswerRefused, match="allowed once, or denied"):
        break_glass(gate, response=CONVERSATION)
    assert break_glass(gate, response=ONCE).settled

    is_marked(gate)
    assert Grant.objects.count() == 0


def test_the_page_of_an_emergency_takes_the_decision_about_an_action() -> None:
    gate = action()
    client = client_of(rescuer())
    where = f"/gates/{gate.pk}/break-glass/"

    page = page_of(client.get(where))
    sent = {"f-decision": "deny", "digest": gate.digest, "reason": "the site is down"}
    done = client.post(where, sent)

    assert "allow_once" in [one.get("value") for one in page.all(name="f-decision")]
    assert done.status_code == 302
    is_marked(gate)


def test_a_yes_in_an_emergency_has_read_the_open_findings_as_well() -> None:
    gate = asked_by_a_flow()

    with pytest.raises(AnswerRefused, match="open findings"):
        break_glass(gate)
    assert break_glass(gate, seen=True).settled
