"""The rules of answering hold on every surface: page, API, and whoever tries both at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from gates.models import Deputy, Request
from gates.principals import Principal
from runs import sweep
from tests import factories, flows
from tests.gates.calls import Api, code, person, program
from tests.gates.later import later
from tests.pages import Page

TEAM: Final[dict[str, Any]] = {"groups": ["Team"], "keys": ["bot"]}
YES: Final[dict[str, Any]] = {"approved": True}
NO: Final[dict[str, Any]] = {"approved": False, "note": "not yet"}


def member(name: str) -> Principal:
    return factories.person(name, groups=["Team"])


def client_of(who: Principal) -> Client:
    client = Client()
    assert who.user is not None
    client.force_login(who.user)
    return client


def asked(**ask: Any) -> Request:
    return factories.pending_gate(audience=TEAM, **ask)


def at(row: Request, act: str = "") -> str:
    return f"/requests/{row.pk}" + (f"/{act}" if act else "")


def submit(api: Api, row: Request, response: Any = YES) -> Any:
    return api.post(at(row, "submit"), {"digest": row.digest, "response": response})


def by_page(client: Client, row: Request, approved: str = "true", **more: str) -> Any:
    sent = {"f-approved": approved, "digest": row.digest, **more}
    return client.post(reverse("gates:answer", args=[row.pk]), sent)


def seen(client: Client, row: Request) -> Page:
    return Page(client.get(row.get_absolute_url()).content.decode())


# --- several people --------------------------------------------------------------------------


@pytest.mark.django_db
def test_over_rest_each_answer_is_a_response_of_its_own() -> None:
    row = asked(needed=2)

    first = submit(person(member("ada")), row).json()
    half = person(member("eve")).get(at(row)).json()
    second = submit(person(member("eve")), row, {**YES, "note": "fine"}).json()
    whole = person(member("eve")).get(at(row)).json()

    assert (first["needed"], first["responded"], first["settled"]) == (2, 1, False)
    assert (half["status"], half["needed"], half["how"]) == ("pending", 2, None)
    assert [one["response"] for one in half["responses"]] == [YES]
    assert (second["responded"], second["settled"], second["next"]) == (2, True, "resumed")
    assert (whole["status"], whole["how"]) == ("answered", "answered")
    assert [one["actor"] for one in whole["responses"]] == [
        member("ada").actor,
        member("eve").actor,
    ]
    assert set(whole["responses"][0]) == {
        "response",
        "actor",
        "at",
        "surface",
        "deputyFor",
        "overrides",
    }


@pytest.mark.django_db
def test_a_program_asks_for_several_people_and_hears_what_cannot_be() -> None:
    bot = program("asker")
    ask = {
        "gateId": "go",
        "gateVersion": 1,
        "decisionText": "Go?",
        "responseSchema": factories.APPROVAL,
        "input": None,
        "stream": "s",
    }

    made = bot.post(
        "/requests",
        {**ask, "audience": {"groups": ["A", "B"]}, "onePerTeam": True, "risk": "high"},
    ).json()
    too_few = bot.post("/requests", {**ask, "audience": {"users": ["ada"]}, "needed": 2})

    assert (made["needed"], made["onePerTeam"], made["excludeRequester"]) == (2, True, True)
    assert code(too_few) == (422, "definition")
    assert too_few.json()["error"]["field"] == "audience"


@pytest.mark.django_db
def test_the_page_says_how_far_it_is_who_answered_and_who_may_still() -> None:
    row = asked(needed=2)
    member("zoe")
    ada, eve = client_of(member("ada")), client_of(member("eve"))

    assert by_page(ada, row).status_code == 302
    mine, hers = seen(ada, row), seen(eve, row)

    assert "1 of 2 answers" in mine.one(class_="gate-state").text
    assert "waits for one more person" in mine.one(class_="decision").text
    who = hers.one(class_="who").text
    assert "2 distinct people have to answer" in who
    assert "May still answer: eve , zoe" in " ".join(who.split())
    assert by_page(ada, row, "false").status_code == 409
    assert by_page(eve, row).status_code == 302
    assert "Approved" in seen(ada, row).one(class_="receipt").text


@pytest.mark.django_db
def test_who_has_answered_finds_it_no_longer_among_what_waits_for_them() -> None:
    row = asked(needed=2)
    ada, eve = client_of(member("ada")), client_of(member("eve"))
    by_page(ada, row)

    def links(client: Client) -> list[str]:
        page = Page(client.get("/?tab=unclaimed").content.decode())
        return [link.text for link in page.all(class_="row-link")]

    assert links(ada) == []
    assert links(eve) == ["Approve release abc123?"]


# --- who asked, and what asks for itself ---------------------------------------------------------


@pytest.mark.django_db
def test_who_started_a_run_of_high_risk_is_kept_from_it_on_every_surface() -> None:
    eve = member("eve")
    run = factories.make_run(
        factories.release_job(audience=TEAM, risk="high"), started_by=eve.actor
    )
    row = factories.pending_gate(run)
    client, api = client_of(eve), person(eve)

    assert client.post(reverse("gates:claim", args=[row.pk])).status_code == 403
    assert by_page(client, row).status_code == 403
    assert code(api.post(at(row, "claim"))) == (403, "self-approval")
    assert code(submit(api, row)) == (403, "self-approval")
    assert code(submit(program("eves", user=eve.user), row)) == (403, "self-approval")

    assert "cannot answer it" in seen(client, row).one(class_="decision").text
    row.refresh_from_db()
    assert row.status == "pending"
    assert factories.event_kinds(run).count("callback-refused") == 5


@pytest.mark.django_db
def test_the_key_of_an_agent_never_answers_the_gate_of_its_own_run() -> None:
    bot = program("bot")
    run = factories.make_run(factories.release_job(audience=TEAM), started_by="key:bot")
    row = factories.pending_gate(run)

    assert code(bot.post(at(row, "claim"), {"routerId": "a"})) == (403, "self-approval")
    assert code(submit(bot, row)) == (403, "self-approval")
    assert code(bot.post(at(row, "assign"), {"to": "ada"})) == (422, "not-assignable")

    kinds = factories.event_kinds(run)
    assert (kinds.count("callback-refused"), kinds.count("callback-submitted")) == (2, 0)


# --- from hand to hand ---------------------------------------------------------------------------


@pytest.mark.django_db
def test_over_rest_it_is_assigned_and_handed_on() -> None:
    row = asked()
    member("ada"), member("eve")
    oda = person(factories.operator())

    assigned = oda.post(at(row, "assign"), {"to": "ada"}).json()
    handed = person(member("ada")).post(at(row, "delegate"), {"to": "eve", "reason": "yours"})
    nobody = person(member("eve")).post(at(row, "delegate"), {"to": "cyd"})

    assert assigned["holder"] == member("ada").actor
    assert handed.json()["holder"] == member("eve").actor
    assert code(nobody) == (422, "not-assignable")
    assert nobody.json()["error"]["field"] == "to"
    history = oda.get(at(row, "history")).json()["items"]
    [event] = [one for one in history if one["kind"] == "callback-delegated"]
    assert (event["from"], event["to"], event["reason"]) == (
        member("ada").actor,
        member("eve").actor,
        "yours",
    )


@pytest.mark.django_db
def test_a_page_without_scripts_hands_it_on_and_tells_what_cannot_be() -> None:
    row = asked()
    member("eve")
    ada = client_of(member("ada"))
    ada.post(reverse("gates:claim", args=[row.pk]))
    where = reverse("gates:delegate", args=[row.pk])

    refused = ada.post(where, {"to": "<b>nobody</b>"})
    handed = ada.post(where, {"to": "eve"})

    assert refused.status_code == 422
    assert "<b>nobody" not in refused.content.decode()
    assert handed.status_code == 302
    assert "eve holds this question" in seen(ada, row).one(class_="decision").text
    assert ada.get(where).status_code == 405


# --- in an emergency -----------------------------------------------------------------------------


def rescuer() -> Principal:
    perms = ["gates.view_request", "runs.view_run", "gates.break_glass"]
    return factories.person("rex", perms=perms)


@pytest.mark.django_db
def test_over_rest_a_person_breaks_the_glass_and_no_key_does() -> None:
    row = asked(needed=2)
    body = {"digest": row.digest, "response": YES, "reason": "the site is down"}

    assert code(person(member("ada")).post(at(row, "break-glass"), body)) == (403, "forbidden")
    own = program("own", user=rescuer().user)
    assert code(own.post(at(row, "break-glass"), body)) == (403, "forbidden")
    assert code(person(rescuer()).post(at(row, "break-glass"), {**body, "reason": ""}))[0] == 422
    done = person(rescuer()).post(at(row, "break-glass"), body)

    assert done.json()["settled"] is True
    shown = person(rescuer()).get(at(row)).json()
    assert shown["how"] == "overridden"
    assert (shown["override"]["by"], shown["override"]["reason"]) == (
        rescuer().actor,
        "the site is down",
    )
    assert person(rescuer()).get(f"/runs/{row.run_id}").json()["overridden"] is True


@pytest.mark.django_db
def test_the_glass_has_a_page_of_its_own_and_opening_it_does_nothing() -> None:
    row = asked()
    rex, ada = client_of(rescuer()), client_of(member("ada"))
    where = reverse("gates:break-glass", args=[row.pk])

    assert ada.get(where).status_code == 403
    page = Page(rex.get(where).content.decode())
    assert [button.text for button in page.all("button", name="f-approved")] == [
        "I say yes in place of those who were asked",
        "I say no in place of those who were asked",
    ]
    row.refresh_from_db()
    assert row.status == "pending"

    sent = {"f-approved": "true", "digest": row.digest}
    assert rex.post(where, {**sent, "reason": " "}).status_code == 422
    assert rex.post(where, {**sent, "reason": "<b>fire</b>"}).status_code == 302
    receipt = seen(ada, row)
    assert "rex answered in place of those who were asked" in receipt.one(class_="glass-mark").text
    assert "<b>fire</b>" in receipt.one(class_="glass-mark").text
    assert rex.get(where).status_code == 302
    run = Page(rex.get(f"/runs/{row.run_id}/").content.decode())
    assert "answered by breaking the glass" in run.one(class_="glass-mark").text


# --- how it ended --------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_the_clock_ended_never_looks_like_a_persons_answer() -> None:
    row = asked(
        expires_in_seconds=60, on_expiry="answer", default_answer={"approved": True, "note": "ok"}
    )
    later(row.run_id, 61)
    sweep.advance(row.run_id)

    shown = person(factories.ben()).get(at(row)).json()
    assert (shown["status"], shown["how"], shown["responses"]) == ("expired", "timed_out", [])
    [ended] = flows.events(row.run, "job:end")
    assert ended.fields["outcome"]["data"]["how"] == "timed_out"


# --- the same answer twice -----------------------------------------------------------------------


@pytest.mark.django_db
def test_the_same_answer_again_is_no_conflict_and_another_one_is() -> None:
    row = asked()
    ada = person(member("ada"))
    first = submit(ada, row).json()

    again, other, hers = submit(ada, row), submit(ada, row, NO), submit(person(member("eve")), row)

    assert again.status_code == 200
    assert again.json() == {**first, "alreadyResolved": True}
    assert code(other) == code(hers) == (409, "answered")
    assert other.json()["error"]["details"]["response"] == YES


# --- a deputy ------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_deputy_is_named_and_dropped_by_the_person_alone() -> None:
    factories.user("dan")
    ada = client_of(member("ada"))
    where = reverse("gates:deputy")

    wrong = ada.post(where, {"deputy": "<i>x</i>", "until": "tomorrow"})
    assert wrong.status_code == 422
    assert "<i>x" not in wrong.content.decode()
    assert Client().post(where, {"deputy": "dan"}).status_code == 302
    assert Deputy.objects.count() == 0

    day = f"{timezone.now() + timedelta(days=3):%Y-%m-%d}"
    assert ada.post(where, {"deputy": "dan", "until": day}).status_code == 302
    row = asked()
    dan = person(factories.person("dan"))
    assert submit(dan, row).json()["settled"] is True
    assert dan.get(at(row)).json()["responses"][0]["deputyFor"] == member("ada").actor
    assert ada.post(where, {"end": "on"}).status_code == 302
    assert Deputy.objects.count() == 0
