from __future__ import annotations

import pytest

from gates import services
from gates.access import Forbidden, NotVisible
from gates.errors import AlreadyAnswered, AlreadyClaimed, Superseded
from gates.models import Request
from runs.models import Event
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_claim_makes_its_caller_the_holder() -> None:
    gate = factories.pending_gate()
    ada = factories.ada()

    claimed = services.claim(gate.pk, principal=ada)

    assert (claimed.request.status, claimed.request.holder) == ("claimed", ada.actor)
    assert factories.event_kinds(gate.run)[-1] == "callback-claimed"


def test_the_token_is_in_no_event_and_in_no_row() -> None:
    gate = factories.pending_gate()

    claimed = services.claim(gate.pk, principal=factories.ada())

    event = Event.objects.get(run=gate.run, kind="callback-claimed")
    assert claimed.token not in str(event.payload)
    assert event.payload["claimToken"] == f"claim-{event.seq}"
    assert claimed.request.claim_seq == event.seq
    assert claimed.token not in str(Request.objects.filter(pk=gate.pk).values().get())


def test_second_router_is_refused_while_the_first_holds_the_claim() -> None:
    gate = factories.pending_gate(audience={"users": ["ada", "eve"]})
    ada, eve = factories.ada(), factories.person("eve")
    services.claim(gate.pk, principal=ada)

    with pytest.raises(AlreadyClaimed, match="ada holds this question since") as refusal:
        services.claim(gate.pk, principal=eve)

    assert refusal.value.details["holder"] == ada.actor
    gate.refresh_from_db()
    assert gate.holder == ada.actor
    assert factories.event_kinds(gate.run).count("callback-claimed") == 1


def test_a_claim_is_not_re_entrant() -> None:
    gate = factories.pending_gate()
    services.claim(gate.pk, principal=factories.ada())

    with pytest.raises(AlreadyClaimed):
        services.claim(gate.pk, principal=factories.ada())


def test_an_answered_question_takes_no_claim() -> None:
    gate = factories.external_request()
    ada = factories.ada()
    services.submit(
        gate.pk, principal=ada, token=None, digest=gate.digest, response={"approved": True}
    )

    with pytest.raises(AlreadyAnswered, match="ada answered this question at") as refusal:
        services.claim(gate.pk, principal=ada)

    assert refusal.value.details["response"] == {"approved": True}


def test_a_superseded_question_names_the_newer_one() -> None:
    old = factories.external_request(stream="s")
    new = factories.external_request(stream="s", input={"revision": "def456"})

    with pytest.raises(Superseded) as refusal:
        services.claim(old.pk, principal=factories.ada())

    assert refusal.value.details == {"supersededBy": new.request_id, "id": str(new.pk)}


def test_whoever_may_only_look_is_refused_and_that_is_recorded() -> None:
    gate = factories.pending_gate()
    ben = factories.ben()

    with pytest.raises(Forbidden):
        services.claim(gate.pk, principal=ben)

    gate.refresh_from_db()
    assert gate.status == "pending"
    refused = Event.objects.get(run=gate.run, kind="callback-refused")
    assert (refused.actor, refused.payload["requestId"]) == (ben.actor, gate.request_id)


def test_a_stranger_learns_nothing_and_leaves_nothing() -> None:
    gate = factories.pending_gate()

    with pytest.raises(NotVisible):
        services.claim(gate.pk, principal=factories.cyd())

    assert "callback-refused" not in factories.event_kinds(gate.run)


def test_a_key_claims_as_one_of_its_own_routers() -> None:
    gate = factories.external_request(audience={"keys": ["bot"]})
    bot = factories.key("bot")

    claimed = services.claim(gate.pk, principal=bot, router_id="key:bot/a")

    assert claimed.request.holder == "key:bot/a"


@pytest.mark.parametrize("router", ["user:1", "key:other/a", "key:bot/", "key:bot/a b", ""])
def test_nobody_claims_as_somebody_else(router: str) -> None:
    gate = factories.external_request(audience={"keys": ["bot"]})

    with pytest.raises(ValueError, match="not a router of"):
        services.claim(gate.pk, principal=factories.key("bot"), router_id=router)

    gate.refresh_from_db()
    assert gate.status == "pending"
