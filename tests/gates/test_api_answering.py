from __future__ import annotations

from typing import Any

import pytest

from gates.models import Request
from tests import factories
from tests.gates.calls import Api, code, person, program

pytestmark = pytest.mark.django_db

YES = {"approved": True}


@pytest.fixture
def gate() -> Request:
    return factories.pending_gate()


def at(gate: Request, act: str = "") -> str:
    return f"/requests/{gate.pk}{'/' if act else ''}{act}"


def answer(gate: Request, response: Any = None, **more: Any) -> dict[str, Any]:
    return {"digest": gate.digest, "response": YES if response is None else response, **more}


def test_claim_and_submit_answer_the_question_and_the_run_goes_on(ada: Api, gate: Request) -> None:
    claimed = ada.post(at(gate, "claim")).json()
    submitted = ada.post(at(gate, "submit"), answer(gate, claimToken=claimed["claimToken"]))

    assert submitted.status_code == 200
    told = submitted.json()
    assert (told["ok"], told["response"], told["next"]) == (True, YES, "resumed")
    gate.refresh_from_db()
    assert gate.status == "answered"
    assert factories.event_kinds(gate.run)[-2:] == ["callback-claimed", "callback-submitted"]


def test_without_a_token_claim_and_answer_are_one_act(ada: Api, gate: Request) -> None:
    submitted = ada.post(at(gate, "submit"), answer(gate))

    assert submitted.json()["next"] == "resumed"
    gate.refresh_from_db()
    assert gate.status == "answered"


def test_an_outside_question_is_recorded_for_its_program_to_fetch(ada: Api) -> None:
    gate = factories.external_request()

    assert ada.post(at(gate, "submit"), answer(gate)).json()["next"] == "recorded"


def test_the_second_claim_is_refused_and_names_the_holder(gate: Request) -> None:
    first, second = factories.person("ada"), factories.person("dee")
    gate = factories.external_request(audience={"users": ["ada", "dee"]})
    token = person(first).post(at(gate, "claim")).json()["claimToken"]

    refused = person(second).post(at(gate, "claim"))

    assert code(refused) == (409, "claimed")
    assert refused.json()["error"]["details"]["holder"] == first.actor
    assert token not in refused.content.decode()
    assert person(first).post(at(gate, "claim")).status_code == 409


def test_a_person_is_one_router_whatever_the_body_says(ada: Api, gate: Request) -> None:
    claimed = ada.post(at(gate, "claim"), {"routerId": "someone-else"})

    gate.refresh_from_db()
    assert claimed.json()["routerId"] == gate.holder == factories.ada().actor


def test_a_key_has_routers_of_its_own_and_no_others(gate: Request) -> None:
    bot = program("deploy-bot")
    gate = factories.external_request(audience={"keys": ["deploy-bot"]}, by=factories.key("asker"))

    claimed = bot.post(at(gate, "claim"), {"routerId": "a"})

    assert claimed.json()["routerId"] == "key:deploy-bot/a"
    token = claimed.json()["claimToken"]
    other = bot.post(at(gate, "submit"), answer(gate, claimToken=token, routerId="b"))
    assert code(other) == (409, "not-owner")
    same = bot.post(at(gate, "submit"), answer(gate, claimToken=token, routerId="a"))
    assert same.status_code == 200
    gate.refresh_from_db()
    assert gate.answered_by == "key:deploy-bot/a"


@pytest.mark.parametrize("suffix", ["user:7/x", "a/b", "", "a b", "a\n", "x" * 65])
def test_a_router_that_is_no_short_name_is_refused(gate: Request, suffix: str) -> None:
    refused = program().post(at(gate, "claim"), {"routerId": suffix})

    assert code(refused) == (422, "validation")
    assert refused.json()["error"]["field"] == "routerId"


def test_a_claim_token_is_told_to_its_claimer_and_nowhere_else(ada: Api, gate: Request) -> None:
    token = ada.post(at(gate, "claim")).json()["claimToken"]

    for path in (
        at(gate),
        at(gate, "history"),
        "/requests?status=claimed",
        f"/runs/{gate.run_id}/events",
    ):
        shown = ada.get(path)
        assert shown.status_code == 200
        assert token not in shown.content.decode()
        assert "claimToken" not in shown.content.decode()


def test_a_released_question_is_free_and_its_token_dead(ada: Api, gate: Request) -> None:
    token = ada.post(at(gate, "claim")).json()["claimToken"]

    assert ada.post(at(gate, "release"), {"claimToken": token}).json()["status"] == "pending"

    assert code(ada.post(at(gate, "release"), {"claimToken": token})) == (409, "not-claimed")
    late = ada.post(at(gate, "submit"), answer(gate, claimToken=token))
    assert code(late) == (409, "not-claimed")
    ada.post(at(gate, "claim"))
    late = ada.post(at(gate, "submit"), answer(gate, claimToken=token))
    assert code(late) == (409, "not-owner")


def test_an_answer_to_another_digest_is_stale(ada: Api, gate: Request) -> None:
    refused = ada.post(at(gate, "submit"), answer(gate) | {"digest": "0" * 64})

    assert code(refused) == (409, "stale")
    gate.refresh_from_db()
    assert gate.status == "pending"


@pytest.mark.parametrize("response", [{}, {"approved": "yes"}, {"approved": 1}, {"note": ""}])
def test_a_wrong_answer_names_its_field_and_may_be_corrected(
    ada: Api, gate: Request, response: Any
) -> None:
    token = ada.post(at(gate, "claim")).json()["claimToken"]

    refused = ada.post(at(gate, "submit"), answer(gate, response, claimToken=token))

    assert code(refused) == (422, "invalid")
    assert refused.json()["error"]["field"] == "approved"
    assert refused.json()["error"]["details"]["fields"][0]["field"] == "approved"
    assert ada.post(at(gate, "submit"), answer(gate, claimToken=token)).status_code == 200


@pytest.mark.parametrize("response", [None, [], "", 1, True])
def test_an_answer_that_is_no_object_is_refused(ada: Api, gate: Request, response: Any) -> None:
    body = {"digest": gate.digest, "response": response}

    assert code(ada.post(at(gate, "submit"), body)) == (422, "invalid")


@pytest.mark.parametrize("missing", ["digest", "response"])
def test_a_submit_without_its_fields_names_them(ada: Api, gate: Request, missing: str) -> None:
    body = answer(gate)
    del body[missing]

    refused = ada.post(at(gate, "submit"), body)

    assert code(refused) == (422, "validation")
    assert refused.json()["error"]["field"] == missing


def test_what_a_browser_may_not_change_is_refused(ada: Api, gate: Request) -> None:
    for field in ("responseSchema", "input", "stepPath", "holder", "actor"):
        refused = ada.post(at(gate, "submit"), answer(gate, **{field: {}}))
        assert code(refused) == (422, "validation")
        assert refused.json()["error"]["field"] == field
    gate.refresh_from_db()
    assert gate.status == "pending"


def test_an_answered_question_says_who_answered_and_what(ada: Api, gate: Request) -> None:
    ada.post(at(gate, "submit"), answer(gate))

    refused = ada.post(at(gate, "submit"), answer(gate, {"approved": False}))

    assert code(refused) == (409, "answered")
    details = refused.json()["error"]["details"]
    assert details["actor"] == factories.ada().actor
    assert details["response"] == YES
    shown = ada.get(at(gate)).json()
    assert [given["response"] for given in shown["responses"]] == [YES]
    assert shown["responses"][0]["surface"] == "api"


def test_ben_looks_and_cyd_sees_nothing(ben: Api, cyd: Api, gate: Request) -> None:
    acts = {
        "claim": {},
        "release": {},
        "submit": answer(gate),
        "force-release": {"reason": "r"},
        "withdraw": {"reason": "r"},
    }

    assert ben.get(at(gate)).status_code == ben.get(at(gate, "history")).status_code == 200
    assert cyd.get(at(gate)).status_code == cyd.get(at(gate, "history")).status_code == 404
    for act, body in acts.items():
        assert code(ben.post(at(gate, act), body)) == (403, "forbidden"), act
        assert code(cyd.post(at(gate, act), body)) == (404, "not-found"), act
    gate.refresh_from_db()
    assert gate.status == "pending"
    kinds = factories.event_kinds(gate.run)
    assert kinds.count("callback-refused") == 3
    assert "callback-claimed" not in kinds


def test_an_operator_takes_a_claim_away_with_a_reason(ada: Api, gate: Request) -> None:
    token = ada.post(at(gate, "claim")).json()["claimToken"]
    oda = person(factories.operator())

    assert code(oda.post(at(gate, "force-release"), {"reason": "  "})) == (422, "reason")
    freed = oda.post(at(gate, "force-release"), {"reason": "ada is on leave"})

    assert freed.json()["status"] == "pending"
    late = ada.post(at(gate, "submit"), answer(gate, claimToken=token))
    assert code(late) == (409, "not-claimed")
    history = ada.get(at(gate, "history")).json()["items"]
    assert history[-1]["reason"] == "ada is on leave"


def test_a_withdrawn_question_takes_no_answer(ada: Api) -> None:
    gate = factories.external_request()
    oda = person(factories.operator())

    withdrawn = oda.post(at(gate, "withdraw"), {"reason": "asked by mistake"})

    assert withdrawn.json()["status"] == "cancelled"
    assert withdrawn.json()["closedReason"] == "asked by mistake"
    assert code(ada.post(at(gate, "submit"), answer(gate))) == (409, "cancelled")


def test_a_question_of_a_cancelled_run_is_answered_only_on_purpose(ada: Api, gate: Request) -> None:
    program().post(f"/runs/{gate.run_id}/cancel")

    assert code(ada.post(at(gate, "submit"), answer(gate))) == (409, "cancelled")
    on_purpose = ada.post(at(gate, "submit"), answer(gate, evenCancelled=True))

    assert on_purpose.status_code == 200
    gate.run.refresh_from_db()
    assert gate.run.status == "cancelled"


def test_looking_changes_nothing(ada: Api, gate: Request) -> None:
    before = factories.event_kinds(gate.run, prefix="")

    for path in (at(gate), at(gate, "history"), "/requests", at(gate, "claim")):
        ada.get(path)
        ada.get(path)

    gate.refresh_from_db()
    assert gate.status == "pending"
    assert factories.event_kinds(gate.run, prefix="") == before
