"""A question is given to a person, and handed on by its holder; nobody gets what is not theirs."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from gates import services
from gates.access import Forbidden, NotVisible
from gates.errors import (
    AlreadyAnswered,
    AlreadyClaimed,
    NotAssignable,
    NotClaimed,
    NotOwner,
    ReasonMissing,
)
from gates.models import Request
from gates.principals import Principal
from gates.projector import rebuild_requests
from runs.kernel import callbacks
from runs.kernel.events import CALLBACK_KINDS
from runs.models import Event
from tests import factories
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db
TEAM: dict[str, Any] = {"groups": ["Team"], "keys": ["bot"]}


def member(name: str) -> Principal:
    return factories.person(name, groups=["Team"])


def asked(**more: Any) -> Request:
    return factories.pending_gate(audience=TEAM, **more)


def told(gate: Request, kind: str) -> list[dict[str, Any]]:
    rows = Event.objects.filter(run=gate.run, kind=kind).order_by("seq")
    return [{**row.payload, "actor": row.actor} for row in rows]


def holder(gate: Request) -> str:
    gate.refresh_from_db()
    return gate.holder


def test_an_operator_assigns_it_and_the_person_holds_it() -> None:
    gate, ada = asked(), member("ada")

    services.assign(gate.pk, principal=factories.operator(), to="ada", reason="she knows it")

    assert holder(gate) == ada.actor
    [assigned] = told(gate, "callback-assigned")
    assert (assigned["to"], assigned["reason"]) == (ada.actor, "she knows it")
    assert assigned["actor"] == factories.operator().actor
    # The person it was given to answers as if they had claimed it.
    receipt = services.submit(
        gate.pk, principal=ada, token=None, digest=gate.digest, response={"approved": True}
    )
    assert receipt.next == "resumed"
    assert rebuild_requests(gate.run) == 0


def test_somebody_of_the_audience_assigns_a_free_one_and_takes_none_from_its_holder() -> None:
    gate = asked()
    member("ada")
    services.assign(gate.pk, principal=member("eve"), to="ada")

    with pytest.raises(AlreadyClaimed):
        services.assign(gate.pk, principal=member("eve"), to="eve")

    assert holder(gate) == member("ada").actor


def test_an_operator_reassigns_it_with_a_reason_and_the_old_token_is_dead() -> None:
    gate = asked()
    token = services.claim(gate.pk, principal=member("ada")).token
    member("eve")

    with pytest.raises(ReasonMissing):
        services.assign(gate.pk, principal=factories.operator(), to="eve")
    services.assign(gate.pk, principal=factories.operator(), to="eve", reason="ada is away")

    assert holder(gate) == member("eve").actor
    with pytest.raises(NotOwner):
        services.submit(
            gate.pk,
            principal=member("ada"),
            token=token,
            digest=gate.digest,
            response={"approved": True},
        )


@pytest.mark.parametrize("name", ["cyd", "nobody at all", "", "\0", "gone"])
def test_nobody_is_given_what_they_may_not_answer(name: str) -> None:
    gate = asked()
    factories.cyd()
    factories.user("gone", groups=["Team"], is_active=False)

    with pytest.raises(NotAssignable) as refused:
        services.assign(gate.pk, principal=factories.operator(), to=name)

    assert refused.value.field == "to"
    assert holder(gate) == ""
    assert told(gate, "callback-assigned") == []


def test_the_requester_is_given_nothing_that_they_may_not_answer() -> None:
    eve = member("eve")
    run = factories.make_run(
        factories.release_job(audience=TEAM, exclude_requester=True), started_by=eve.actor
    )
    gate = factories.pending_gate(run)

    with pytest.raises(NotAssignable):
        services.assign(gate.pk, principal=factories.operator(), to="eve")


def test_who_may_only_look_assigns_nothing_and_who_has_no_business_sees_nothing() -> None:
    gate = asked()
    member("ada")

    with pytest.raises(Forbidden):
        services.assign(gate.pk, principal=factories.ben(), to="ada")
    with pytest.raises(NotVisible):
        services.assign(gate.pk, principal=factories.cyd(), to="ada")
    with pytest.raises(Forbidden):
        services.assign(gate.pk, principal=factories.key("bot"), to="ada")

    assert [one["actor"] for one in told(gate, "callback-refused")] == [
        factories.ben().actor,
        "key:bot",
    ]


def test_the_holder_hands_it_on() -> None:
    gate, ada, eve = asked(), member("ada"), member("eve")
    token = services.claim(gate.pk, principal=ada).token

    services.delegate(gate.pk, principal=ada, to="eve", reason="you wrote it")

    assert holder(gate) == eve.actor
    [handed] = told(gate, "callback-delegated")
    assert (handed["from"], handed["to"], handed["reason"]) == (
        ada.actor,
        eve.actor,
        "you wrote it",
    )
    with pytest.raises(NotOwner):
        services.release(gate.pk, principal=ada, token=token)
    assert rebuild_requests(gate.run) == 0


def test_only_the_holder_hands_it_on_and_only_to_somebody_who_may_answer() -> None:
    gate = asked()
    member("eve")
    with pytest.raises(NotClaimed):
        services.delegate(gate.pk, principal=member("ada"), to="eve")
    services.claim(gate.pk, principal=member("ada"))

    with pytest.raises(NotOwner):
        services.delegate(gate.pk, principal=member("eve"), to="eve")
    with pytest.raises(NotAssignable):
        services.delegate(gate.pk, principal=member("ada"), to="cyd")

    assert holder(gate) == member("ada").actor


def test_a_program_hands_what_it_holds_to_a_person() -> None:
    gate = asked()
    member("eve")
    bot = factories.key("bot")
    token = services.claim(gate.pk, principal=bot).token

    services.delegate(gate.pk, principal=bot, to="eve", token=token, reason="not sure")

    assert holder(gate) == member("eve").actor


def test_an_answered_question_is_given_to_nobody() -> None:
    gate = asked()
    services.submit(
        gate.pk,
        principal=member("ada"),
        token=None,
        digest=gate.digest,
        response={"approved": True},
    )

    with pytest.raises(AlreadyAnswered):
        services.assign(gate.pk, principal=factories.operator(), to="ada")


def test_of_several_nobody_is_given_it_who_has_answered() -> None:
    gate = asked(needed=2)
    services.submit(
        gate.pk,
        principal=member("ada"),
        token=None,
        digest=gate.digest,
        response={"approved": True},
    )

    with pytest.raises(AlreadyAnswered):
        services.assign(gate.pk, principal=factories.operator(), to="ada")


def test_the_contracts_own_history_still_replays() -> None:
    gate = asked()
    member("eve")
    services.claim(gate.pk, principal=member("ada"))
    services.delegate(gate.pk, principal=member("ada"), to="eve")
    services.assign(gate.pk, principal=factories.operator(), to="ada", reason="back again")

    rows = Event.objects.filter(run=gate.run, kind__in=[*CALLBACK_KINDS]).order_by("seq")
    replayed = callbacks.fold_all(
        callbacks.empty(), ({"kind": row.kind, **row.payload} for row in rows)
    )

    assert replayed.requests[gate.request_id].router_id == member("ada").actor


@pytest.mark.parametrize("hx", [True, False])
def test_a_name_that_is_refused_stays_in_its_open_form(*, hx: bool) -> None:
    gate = asked()
    where = reverse("gates:assign", args=[gate.pk])
    given = {"to": "nobdoy", "reason": '"><b>she knows it'}

    answer = client_of(factories.operator()).post(
        where, given, headers={"HX-Request": "true"} if hx else {}
    )

    assert answer.status_code == 422
    page = page_of(answer)
    [to], [reason] = page.all("input", name="to"), page.all("input", name="reason")
    assert (to.attributes["value"], reason.attributes["value"]) == (given["to"], given["reason"])
    [fold] = [one for one in page.all("details") if "hand" in one.attributes["class"].split()]
    assert "open" in fold.attributes
