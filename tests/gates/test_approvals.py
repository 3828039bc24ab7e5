"""The approval of an action on its page and over REST: what is shown, who decides, what is kept."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from gates import services as gates
from gates.access import SelfApproval
from gates.errors import AlreadyAnswered, AnswerRefused, Expired, PolicyChanged
from gates.models import Grant, Request
from gates.principals import Principal
from runs import services
from runs.access import Forbidden
from runs.models import Run
from tests import factories, flows
from tests.acting import ALWAYS, CONVERSATION, DENY, FIRST, ONCE, Downstream, calling, publish_post
from tests.gates.calls import person, program
from tests.gates.later import later
from tests.pages import Page

pytestmark = pytest.mark.django_db


@pytest.fixture
def downstream() -> Downstream:
    made = Downstream()
    publish_post(made, audience=factories.FOR_ADA)
    return made


def asked(**options: Any) -> Request:
    """The approval that a new run asks of ada for."""
    name = flows.offer(calling(options.pop("input", FIRST)), audience=factories.FOR_ADA)
    run = services.start_run(name, actor=options.pop("actor", "user:777"), **options)
    flows.work(run)
    return Request.objects.select_related("run").get(run=run)


def decide(who: Principal, row: Request, response: dict[str, Any]) -> Any:
    return gates.submit(row.pk, principal=who, token=None, digest=row.digest, response=response)


def signed_in(who: Principal) -> Client:
    client = Client()
    assert who.user is not None
    client.force_login(who.user)
    return client


def page_of(who: Principal, row: Request) -> Page:
    response = signed_in(who).get(f"/gates/{row.pk}/")
    assert response.status_code == 200
    return Page(response.content.decode())


def words_of(response: Any) -> str:
    return Page(response.content.decode()).one("main").text


# --- who decides ---------------------------------------------------------------------------------


def test_the_one_who_asked_does_not_decide_about_a_high_risk(downstream: Downstream) -> None:
    publish_post(downstream, risk="high", audience={"users": ["ada"]})
    row = asked(actor=factories.ada().actor)

    with pytest.raises(SelfApproval):
        decide(factories.ada(), row, ONCE)
    assert SelfApproval.code == "self-approval"
    assert Request.objects.get(pk=row.pk).status == "pending"


def test_a_key_of_nobody_never_decides_about_an_action(downstream: Downstream) -> None:
    publish_post(downstream, audience={"keys": ["bot"]})
    row = asked()

    with pytest.raises(Forbidden, match="no person"):
        decide(factories.key("bot"), row, ONCE)
    assert downstream.sent == []


def test_somebody_else_sees_nothing_and_somebody_who_looks_decides_nothing(
    downstream: Downstream,
) -> None:
    row = asked()

    assert signed_in(factories.cyd()).get(f"/gates/{row.pk}/").status_code == 404
    assert person(factories.cyd()).get(f"/requests/{row.pk}").status_code == 404
    with pytest.raises(Forbidden):
        decide(factories.ben(), row, ONCE)


def test_the_first_decision_stands(downstream: Downstream) -> None:
    row = asked()
    decide(factories.ada(), row, DENY)

    with pytest.raises(AlreadyAnswered):
        decide(factories.ada(), row, ONCE)
    flows.work()
    assert downstream.sent == []


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("response", [ONCE, CONVERSATION, ALWAYS])
def test_a_decision_at_the_end_of_its_time_is_refused_and_makes_no_grant(
    downstream: Downstream, settings: LazySettings, response: dict[str, Any], late: int
) -> None:
    settings.OBVERSA_STANDING_GRANTS = ["*:medium"]
    row = asked(conversation="c1")
    later(row.run_id, 86_400 + late)

    with pytest.raises(Expired):
        decide(factories.ada(), row, response)
    assert Request.objects.get(pk=row.pk).status == "expired"
    assert Grant.objects.count() == 0
    flows.work()
    assert flows.fresh(row.run).status == Run.Status.FAILED


@pytest.mark.parametrize("response", [CONVERSATION, ALWAYS, {"decision": "yes"}, {}])
def test_what_is_not_offered_is_refused(downstream: Downstream, response: dict[str, Any]) -> None:
    row = asked()

    with pytest.raises(AnswerRefused):
        decide(factories.ada(), row, response)
    assert Request.objects.get(pk=row.pk).status == "pending"


def test_a_policy_that_was_narrowed_since_refuses_the_decision(
    downstream: Downstream, settings: LazySettings
) -> None:
    settings.OBVERSA_STANDING_GRANTS = ["*:medium"]
    row = asked()
    settings.OBVERSA_STANDING_GRANTS = []

    with pytest.raises(PolicyChanged):
        decide(factories.ada(), row, ALWAYS)
    assert Request.objects.get(pk=row.pk).status == "pending"
    assert Grant.objects.count() == 0


def test_input_that_comes_with_a_decision_is_refused(downstream: Downstream) -> None:
    row = asked()

    with pytest.raises(AnswerRefused):
        decide(factories.ada(), row, {**ONCE, "input": {"draft_id": "mine"}})


def test_the_same_decision_twice_queues_one_start(downstream: Downstream) -> None:
    row = asked()
    first = decide(factories.ada(), row, ONCE)
    again = decide(factories.ada(), row, ONCE)

    assert (first.already_resolved, again.already_resolved) == (False, True)
    flows.work()
    assert len(downstream.sent) == 1


# --- the card ------------------------------------------------------------------------------------


def test_the_card_says_what_runs_and_what_each_decision_means(downstream: Downstream) -> None:
    row = asked(conversation="c1", actor=factories.person("eve").actor)
    signed_in(factories.ada()).post(f"/gates/{row.pk}/claim/")
    page = page_of(factories.ada(), row)

    text = page.one("main").text
    for words in ("publish_post", "medium", "2.50 EUR", "d1", "linkedin"):
        assert words in text, words
    buttons = page.all(name="f-decision")
    assert [one.get("value") for one in buttons] == ["allow_once", "allow_conversation", "deny"]
    assert "every later call of publish_post in the conversation c1" in text
    assert "in runs that eve started, runs without asking, whatever its input" in text


def test_a_decision_on_the_page_is_recorded_without_scripts(downstream: Downstream) -> None:
    row = asked()
    ada = signed_in(factories.ada())
    ada.post(f"/gates/{row.pk}/claim/")
    sent = {"digest": row.digest, "f-decision": "allow_once", "f-note": "go on"}
    response = ada.post(f"/gates/{row.pk}/answer/", sent, follow=True)

    assert response.status_code == 200
    assert "Allowed once" in words_of(response)
    flows.work()
    assert "it ran" in page_of(factories.ada(), row).one("main").text
    decided = flows.events(row.run, "approval.decided")[0]
    assert decided.fields["note"] == "go on"
    assert decided.fields["decidedBy"] == factories.ada().actor


def test_values_that_not_everybody_reads_are_masked_everywhere(downstream: Downstream) -> None:
    publish_post(downstream, sensitive=["/token"], audience=factories.FOR_ADA)
    row = asked(input={"draft_id": "d1", "token": "geheim"})
    ada, api = signed_in(factories.ada()), person(factories.ada())
    reader = factories.person("ina", perms=["gates.view_request", "gates.view_sensitive"])

    assert "geheim" not in ada.get(f"/gates/{row.pk}/").content.decode()
    assert "1 value of it is hidden from you" in page_of(factories.ada(), row).one("main").text
    assert api.get(f"/requests/{row.pk}").json()["input"]["input"]["token"] == "[masked]"
    assert "geheim" not in api.get(f"/runs/{row.run_id}/events").content.decode()
    assert "geheim" in signed_in(reader).get(f"/gates/{row.pk}/").content.decode()
    decide(factories.ada(), row, ONCE)
    flows.work()
    assert downstream.sent[0][1]["token"] == "geheim"


def test_text_of_a_model_marks_nothing_up(downstream: Downstream) -> None:
    row = asked(input={"draft_id": "[yes](https://evil.example) **<script>x</script>**"})
    page = signed_in(factories.ada()).get(f"/gates/{row.pk}/")
    text = page.content.decode()

    assert "<script>x" not in text
    assert 'href="https://evil.example' not in text


def test_a_line_of_the_inbox_says_that_something_is_to_be_allowed(downstream: Downstream) -> None:
    asked()
    text = words_of(signed_in(factories.ada()).get("/"))

    assert "Publish d1 to linkedin" in text
    assert "allow" in text


# --- REST ----------------------------------------------------------------------------------------


def test_programs_are_told_what_pages_show(downstream: Downstream) -> None:
    row = asked(conversation="c1")
    told = person(factories.ada()).get(f"/requests/{row.pk}").json()

    assert told["kind"] == "approval"
    action = told["action"]
    assert (action["tool"], action["risk"], action["effect"], action["category"]) == (
        "publish_post",
        "medium",
        "external-write",
        "publish",
    )
    assert action["cost"] == {"minorUnits": 250, "currency": "EUR"}
    assert [one["decision"] for one in action["decisions"]] == [
        "allow_once",
        "allow_conversation",
        "deny",
    ]
    assert told["input"]["idempotencyKey"] == action["idempotencyKey"]


def test_a_decision_over_rest_runs_the_call(downstream: Downstream) -> None:
    row = asked()
    told = person(factories.ada()).post(
        f"/requests/{row.pk}/submit", {"digest": row.digest, "response": ONCE}
    )

    assert (told.status_code, told.json()["next"]) == (200, "resumed")
    flows.work()
    assert len(downstream.sent) == 1


def test_a_run_id_in_a_body_wakes_no_other_run(downstream: Downstream) -> None:
    row = asked()
    other = asked()
    told = person(factories.ada()).post(
        f"/requests/{row.pk}/submit",
        {"digest": row.digest, "response": ONCE, "runId": str(other.run_id)},
    )

    assert told.status_code == 422
    assert Request.objects.filter(status="pending").count() == 2


def test_a_refusal_over_rest_has_its_code(downstream: Downstream) -> None:
    publish_post(downstream, risk="high", audience={"keys": ["deploy-bot"], "users": ["ada"]})
    row = asked(actor=factories.ada().actor)
    body = {"digest": row.digest, "response": ONCE}
    own = person(factories.ada()).post(f"/requests/{row.pk}/submit", body)
    bot = program().post(f"/requests/{row.pk}/submit", body)

    assert (own.status_code, own.json()["error"]["code"]) == (403, "self-approval")
    assert (bot.status_code, bot.json()["error"]["code"]) == (403, "forbidden")
