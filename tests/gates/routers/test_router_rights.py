"""What a service may: answer what names it, and nothing else, in a reply or with its key."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from gates import services
from gates.errors import AlreadyClaimed, DefinitionRefused, KeyRefused
from gates.keys import create_key
from gates.models import Request, Response, Router, RouterCall
from gates.routers import calls
from runs import approval
from runs.kernel.errors import DeclarationError
from tests import factories
from tests.gates.calls import Api, code
from tests.gates.routers.service import (
    Service,
    asked,
    fresh,
    posted,
    refusals,
    router,
    state,
)

pytestmark = pytest.mark.django_db


def service_key(made: Router, **more: Any) -> Api:
    _, text = create_key(f"{made.name}-key", ["read", "claim", "answer"], router=made, **more)
    return Api(Client(), {"Authorization": f"Bearer {text}"})


def test_a_service_answers_later_with_its_own_key(service: Service) -> None:
    made = router(service)
    service.answers = [(202, b"")]
    row = asked()
    posted()
    assert (fresh(row).status, fresh(row).holder) == ("claimed", "router:risk")
    assert state(row) == ("waiting", 1)
    with pytest.raises(AlreadyClaimed):
        services.claim(row.pk, principal=factories.ada())

    told = service_key(made).post(
        f"/requests/{row.pk}/submit", {"digest": row.digest, "response": {"approved": False}}
    )

    assert told.status_code == 200
    assert told.json()["actor"] == "router:risk"
    assert Response.objects.get().actor == "router:risk"


def test_its_key_is_the_router_and_nothing_else(service: Service) -> None:
    made = router(service)
    router(service, "other")
    mine, theirs = asked(), asked("other", gate_id="other")
    for_people = factories.external_request(gate_id="people")
    for_all = factories.external_request(gate_id="everyone", audience={})
    api = service_key(made)

    assert [one["id"] for one in api.get("/requests").json()["items"]] == [str(mine.pk)]
    for row in (theirs, for_people, for_all):
        assert code(api.post(f"/requests/{row.pk}/claim")) == (404, "not-found")
    assert code(api.get(f"/runs/{for_people.run_id}")) == (404, "not-found")
    assert code(api.post("/requests", {})) in ((403, "scope"), (422, "validation"))
    claimed = api.post(f"/requests/{mine.pk}/claim", {"routerId": "x"}).json()
    assert claimed["routerId"] == "router:risk"

    Router.objects.filter(pk=made.pk).update(enabled=False)
    assert code(api.get("/requests")) == (403, "scope")


def test_the_key_of_a_router_may_do_no_more_than_a_router(service: Service) -> None:
    made = router(service)

    with pytest.raises(KeyRefused, match="may only"):
        create_key("k", ["operate"], router=made)
    with pytest.raises(KeyRefused, match="nobody's"):
        create_key("k", ["answer"], factories.user("ada"), router=made)


def test_the_command_makes_such_a_key(service: Service) -> None:
    router(service)
    out = StringIO()

    call_command("create_key", "k", "--scope", "answer", "--router", "risk", stdout=out)

    assert "k as risk may: answer" in out.getvalue()
    with pytest.raises(CommandError, match="no router"):
        call_command("create_key", "k2", "--scope", "answer", "--router", "nobody")


def test_the_audience_has_to_name_the_router(service: Service) -> None:
    router(service)

    with pytest.raises(DefinitionRefused, match="audience has to name") as refused:
        asked(audience={"users": ["ada"]})
    assert refused.value.field == "router"
    with pytest.raises(DeclarationError, match="audience has to name"):
        approval("a", "Go?", router="risk")
    with pytest.raises(DeclarationError, match="no person"):
        approval("a", "Go?", router="risk", audience={"routers": ["risk"]}, needed=2)


def test_a_service_that_started_the_run_cannot_answer_what_its_asker_may_not(
    service: Service,
) -> None:
    router(service)
    row = asked(excludeRequester=True)
    Request.objects.filter(pk=row.pk).update(asked_by="router:risk")

    posted()

    assert not service.got
    assert state(row) == ("failed", 1)
    assert any("cannot answer" in told for told in refusals(row))


def test_a_router_that_is_not_here_leaves_the_question_to_people(service: Service) -> None:
    row = asked("nobody")

    posted()

    assert fresh(row).status == "pending"
    assert "no router 'nobody' here" in refusals(row)[-1]
    services.claim(row.pk, principal=factories.ada())


def test_a_question_that_is_held_or_closed_is_not_sent(service: Service) -> None:
    router(service)
    row = asked()
    services.claim(row.pk, principal=factories.ada())
    call = RouterCall.objects.get()

    assert calls.make(call.pk)
    assert (state(row), len(service.got)) == (("pending", 0), 0)

    services.withdraw(row.pk, principal=factories.operator(), reason="no need")
    posted()
    assert (state(row)[0], len(service.got)) == ("withdrawn", 0)


def test_sensitive_values_go_only_to_a_router_that_may_see_them(service: Service) -> None:
    router(service)
    router(service, "trusted", sees_sensitive=True)
    hints = {"sensitive": ["/password"]}
    asked(input={"password": "s3cret"}, presentation=hints)
    asked("trusted", gate_id="other", input={"password": "s3cret"}, presentation=hints)

    posted()

    told = {one["gateId"]: (one["input"]["password"], one["masked"]) for one in service.questions}
    assert told == {"release-approval": ("[masked]", ["/password"]), "other": ("s3cret", [])}
