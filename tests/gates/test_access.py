"""Ada may answer, ben may look, cyd must not learn that there is anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gates import access, queries, services
from gates.access import Forbidden, NotVisible
from gates.errors import GateError
from gates.models import Request
from gates.pages import details
from gates.principals import Principal
from runs.access import visible_runs
from tests import factories

pytestmark = pytest.mark.django_db
Act = Callable[[Request, Principal], Any]

ACTS: dict[str, Act] = {
    "claim": lambda gate, who: services.claim(gate.pk, principal=who),
    "release": lambda gate, who: services.release(gate.pk, principal=who),
    "submit": lambda gate, who: services.submit(
        gate.pk, principal=who, token=None, digest=gate.digest, response={"approved": True}
    ),
    "force_release": lambda gate, who: services.force_release(gate.pk, principal=who, reason="r"),
    "withdraw": lambda gate, who: services.withdraw(gate.pk, principal=who, reason="r"),
    "detail": lambda gate, who: details.detail(who, gate.pk),
}
ANSWERING = ("claim", "release", "submit")


def told(act: str, who: Principal, gate: Request) -> str:
    """What the act says to this caller: ok, or the code of its refusal."""
    try:
        ACTS[act](gate, who)
    except (GateError, Forbidden, NotVisible) as refusal:
        return str(refusal.code)
    return "ok"


@pytest.mark.parametrize("act", ACTS)
def test_cyd_gets_404_from_everything(act: str) -> None:
    gate = factories.pending_gate()

    assert told(act, factories.cyd(), gate) == "not-found"
    assert Request.objects.get(pk=gate.pk).status == "pending"


@pytest.mark.parametrize("act", ACTS)
def test_nobody_who_is_not_signed_in_gets_anything(act: str) -> None:
    from django.contrib.auth.models import AnonymousUser

    gate = factories.external_request(audience={})

    assert told(act, Principal.for_user(AnonymousUser()), gate) == "not-found"


@pytest.mark.parametrize("act", ACTS)
def test_somebody_who_left_gets_nothing(act: str) -> None:
    gate = factories.pending_gate()
    factories.user("ada", is_active=False)

    assert told(act, factories.ada(), gate) == "not-found"


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        ("claim", "forbidden"),
        ("release", "forbidden"),
        ("submit", "forbidden"),
        ("force_release", "forbidden"),
        ("withdraw", "forbidden"),
        ("detail", "ok"),
    ],
)
def test_ben_looks_and_touches_nothing(act: str, expected: str) -> None:
    gate = factories.pending_gate()

    assert told(act, factories.ben(), gate) == expected
    assert Request.objects.get(pk=gate.pk).status == "pending"


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        ("claim", "ok"),
        ("release", "not-claimed"),
        ("submit", "ok"),
        ("force_release", "forbidden"),
        ("withdraw", "forbidden"),
        ("detail", "ok"),
    ],
)
def test_ada_answers_and_rescues_nothing(act: str, expected: str) -> None:
    assert told(act, factories.ada(), factories.pending_gate()) == expected


@pytest.mark.parametrize("act", ANSWERING)
def test_a_superuser_answers_nothing_that_is_somebody_elses(act: str) -> None:
    root = factories.person("root", is_superuser=True)

    assert told(act, root, factories.pending_gate()) == "forbidden"


@pytest.mark.parametrize("act", ANSWERING)
def test_whoever_started_the_run_answers_nothing_that_is_somebody_elses(act: str) -> None:
    starter = factories.person("sam")
    run = factories.make_run(started_by=starter.actor)

    assert told(act, starter, factories.pending_gate(run)) == "forbidden"


def test_rights_that_went_while_the_page_was_open_are_gone() -> None:
    gate = factories.pending_gate(audience={"groups": ["Release"]})
    eve = factories.person("eve", groups=["Release"])
    token = services.claim(gate.pk, principal=eve).token
    assert eve.user is not None
    eve.user.groups.clear()

    with pytest.raises(Forbidden):
        services.submit(
            gate.pk, principal=eve, token=token, digest=gate.digest, response={"approved": True}
        )

    assert Request.objects.get(pk=gate.pk).status == "claimed"
    assert factories.event_kinds(gate.run)[-1] == "callback-refused"


def test_a_key_that_was_revoked_meanwhile_answers_nothing() -> None:
    from django.utils import timezone

    from gates.models import ApiKey

    gate = factories.external_request(audience={"keys": ["bot"]})
    bot = factories.key("bot")
    ApiKey.objects.update(revoked_at=timezone.now())

    assert told("submit", bot, gate) == "forbidden"


@pytest.mark.parametrize(
    ("audience", "rights"),
    [
        ({"users": ["eve"]}, {}),
        ({"groups": ["Release"]}, {"groups": ["Release"]}),
        ({"permissions": ["runs.change_run"]}, {"perms": ["runs.change_run"]}),
        ({}, {}),
    ],
)
def test_an_audience_names_people_in_four_ways(audience: dict[str, Any], rights: Any) -> None:
    gate = factories.pending_gate(run=factories.make_run(factories.release_job(audience=audience)))
    if not audience:
        # Without an audience of its own a step's question is its run's.
        gate = factories.external_request(audience={})

    assert told("submit", factories.person("eve", **rights), gate) == "ok"


def test_a_step_without_an_audience_asks_whoever_may_start_the_workflow() -> None:
    job = factories.release_job(audience=None)
    gate = factories.pending_gate(factories.make_run(job, audience={"groups": ["Release"]}))

    assert told("claim", factories.cyd(), gate) == "not-found"
    assert told("claim", factories.person("eve", groups=["Release"]), gate) == "ok"


@pytest.mark.parametrize("act", ["claim", "submit"])
def test_whoever_asked_may_be_kept_from_answering(act: str) -> None:
    factories.person("ada")
    gate = factories.external_request(
        audience={}, by=factories.person("eve"), excludeRequester=True
    )

    assert told(act, factories.person("eve"), gate) == "self-approval"
    assert told(act, factories.ada(), gate) == "ok"


@pytest.mark.parametrize(
    ("scopes", "act", "expected"),
    [
        (["read"], "detail", "ok"),
        (["read"], "claim", "forbidden"),
        (["read"], "submit", "forbidden"),
        (["claim"], "claim", "ok"),
        (["claim"], "submit", "forbidden"),
        (["answer"], "submit", "ok"),
        (["answer"], "force_release", "forbidden"),
        (["operate"], "withdraw", "ok"),
        (["operate"], "submit", "forbidden"),
        ([], "detail", "not-found"),
    ],
)
def test_a_key_does_what_its_scopes_say(scopes: list[str], act: str, expected: str) -> None:
    gate = factories.external_request(audience={"keys": ["narrow"]}, by=factories.key("asker"))

    assert told(act, factories.key("narrow", scopes), gate) == expected


def test_a_persons_key_never_exceeds_the_person() -> None:
    gate = factories.pending_gate()
    services.claim(gate.pk, principal=factories.ada())
    mine = factories.key("mine", ["operate", "read", "answer"], user=factories.ada().user)

    assert told("force_release", mine, gate) == "forbidden"
    assert told("withdraw", mine, gate) == "forbidden"


def test_a_persons_key_answers_what_the_person_may_answer() -> None:
    gate = factories.pending_gate()
    mine = factories.key("mine", ["answer"], user=factories.ada().user)

    assert told("submit", mine, gate) == "ok"
    gate.refresh_from_db()
    assert gate.answered_by == "key:mine"


def test_lists_show_each_caller_what_is_theirs() -> None:
    gate = factories.pending_gate()
    factories.external_request(audience={"users": ["eve"]}, by=factories.person("paul"))

    def listed(who: Principal) -> int:
        return len(queries.requests(who)[0])

    assert [row.pk for row in access.visible_requests(factories.ada())] == [gate.pk]
    assert [listed(who()) for who in (factories.ada, factories.ben, factories.cyd)] == [1, 2, 0]


def test_whoever_may_answer_a_question_of_a_workflow_sees_its_run() -> None:
    gate = factories.pending_gate()
    outside = factories.external_request(by=factories.person("paul"))

    seen = set(visible_runs(factories.ada()).values_list("pk", flat=True))

    assert gate.run_id in seen
    assert outside.run_id not in seen
