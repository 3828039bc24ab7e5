from __future__ import annotations

from typing import Any

import pytest

from gates import services
from gates.errors import (
    AlreadyAnswered,
    AlreadyClaimed,
    AnswerRefused,
    NotClaimed,
    NotOwner,
    StaleDigest,
    Superseded,
)
from gates.models import Request, Response
from runs.kernel.jsonable import JsonValueError
from runs.models import Event, Run, Step
from tests import factories

pytestmark = pytest.mark.django_db
YES = {"approved": True}


def answer(gate: Request, token: str | None = None, **changes: Any) -> services.Receipt:
    given: dict[str, Any] = {
        "principal": factories.ada(),
        "digest": gate.digest,
        "response": YES,
    } | changes
    return services.submit(gate.pk, token=token, **given)


def claimed(gate: Request) -> str:
    return services.claim(gate.pk, principal=factories.ada()).token


def test_an_answer_closes_the_question_and_the_run_goes_on() -> None:
    gate = factories.pending_gate()

    receipt = answer(gate, claimed(gate), response={"approved": True, "note": "go"})

    assert receipt.next == "resumed"
    assert receipt.response == {"approved": True, "note": "go"}
    gate.refresh_from_db()
    assert (gate.status, gate.answered_by, gate.holder) == ("answered", factories.ada().actor, "")
    row = Response.objects.get(request=gate)
    assert (row.seq, row.surface, row.response) == (receipt.seq, "browser", receipt.response)
    assert Step.objects.get(run=gate.run, name="approve").status == "passed"


def test_a_held_run_records_the_answer_and_waits_for_somebody_to_resume() -> None:
    gate = factories.pending_gate(on_answer="hold")

    receipt = answer(gate, claimed(gate))

    assert receipt.next == "recorded"
    assert Run.objects.get(pk=gate.run_id).status == Run.Status.PAUSED


def test_an_answer_to_an_outside_program_is_recorded() -> None:
    assert answer(factories.external_request()).next == "recorded"


def test_without_a_token_claim_and_answer_are_one_act() -> None:
    gate = factories.pending_gate()

    answer(gate)

    assert factories.event_kinds(gate.run)[-2:] == ["callback-claimed", "callback-submitted"]


def test_without_a_token_the_callers_own_claim_is_used() -> None:
    gate = factories.pending_gate()
    claimed(gate)

    answer(gate, None)

    assert factories.event_kinds(gate.run).count("callback-claimed") == 1


def test_without_a_token_somebody_elses_claim_stands() -> None:
    gate = factories.pending_gate(audience={"users": ["ada", "eve"]})
    claimed(gate)

    with pytest.raises(AlreadyClaimed):
        answer(gate, principal=factories.person("eve"))


def test_a_wrong_answer_in_one_act_leaves_no_claim_behind() -> None:
    gate = factories.pending_gate()

    with pytest.raises(AnswerRefused):
        answer(gate, response={"approved": "yes"})

    gate.refresh_from_db()
    assert gate.status == "pending"
    assert factories.event_kinds(gate.run)[-3:] == [
        "callback-claimed",
        "callback-rejected",
        "callback-released",
    ]


@pytest.mark.parametrize(
    "wrong", [{}, {"approved": 1}, {"approved": None}, {"approved": "true"}, [], None, "", 7, False]
)
def test_a_wrong_answer_keeps_the_claim_and_then_the_right_one_counts(wrong: Any) -> None:
    gate = factories.external_request()
    token = claimed(gate)

    with pytest.raises(AnswerRefused):
        answer(gate, token, response=wrong)
    gate.refresh_from_db()
    assert gate.status == "claimed"

    assert answer(gate, token, response={"approved": True, "zzz": 1}).response == {
        "approved": True,
        "zzz": 1,
    }
    assert factories.event_kinds(gate.run) == [
        "callback-requested",
        "callback-routed",
        "callback-claimed",
        "callback-rejected",
        "callback-submitted",
    ]


def test_what_only_the_host_checks_is_refused_beside_its_field() -> None:
    schema = {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}, "note": {"type": "string", "minLength": 9}},
        "required": ["approved"],
        "additionalProperties": False,
    }
    gate = factories.external_request(schema=schema)
    token = claimed(gate)

    with pytest.raises(AnswerRefused) as refusal:
        answer(gate, token, response={"approved": True, "note": "secret", "more": 1})

    assert sorted(refusal.value.fields) == [
        ("more", "The question does not ask for this."),
        ("note", "This has to have at least 9 characters."),
    ]
    rejected = Event.objects.get(run=gate.run, kind="callback-rejected")
    assert rejected.payload.keys() == {"requestId", "routerId", "reason"}
    assert "secret" not in str(rejected.payload)
    gate.refresh_from_db()
    assert gate.status == "claimed"
    assert not Response.objects.filter(request=gate).exists()


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**53 + 1, 10**400, "\ud800", b"bytes", {1: 2}],
)
def test_what_is_not_json_raises_and_changes_nothing(value: Any) -> None:
    gate = factories.external_request(schema={})
    token = claimed(gate)
    before = factories.event_kinds(gate.run)

    with pytest.raises(JsonValueError):
        answer(gate, token, response={"value": value})

    assert factories.event_kinds(gate.run) == before


def test_a_value_nested_300_deep_raises_and_changes_nothing() -> None:
    gate = factories.external_request(schema={})
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}

    with pytest.raises(JsonValueError):
        answer(gate, claimed(gate), response=deep)


def test_a_nul_character_is_kept_as_it_is() -> None:
    gate = factories.external_request(schema={})

    answer(gate, response={"text": "a\0b", "deep": [1.0, 1e16]})

    assert Response.objects.get(request=gate).response == {"text": "a\0b", "deep": [1, 1e16]}


def test_an_answered_question_takes_no_other_answer() -> None:
    gate = factories.external_request(audience={})
    token = claimed(gate)
    answer(gate, token)

    with pytest.raises(AlreadyAnswered, match="ada answered") as refused:
        answer(gate, token, response={"approved": False})
    with pytest.raises(AlreadyAnswered):
        services.submit(
            gate.pk,
            principal=factories.person("zoe"),
            token=None,
            digest=gate.digest,
            response={"approved": True},
        )

    assert refused.value.details["response"] == {"approved": True}
    assert Response.objects.filter(request=gate).count() == 1


def test_the_same_answer_once_more_gets_the_first_ones_receipt() -> None:
    gate = factories.external_request()
    first = answer(gate, claimed(gate))

    again = answer(gate)

    assert again.already_resolved
    assert not first.already_resolved
    assert (again.seq, again.at, again.response) == (first.seq, first.at, first.response)
    assert factories.event_kinds(gate.run).count("callback-submitted") == 1


def test_an_answer_for_another_question_is_stale() -> None:
    gate = factories.external_request()
    token = claimed(gate)

    with pytest.raises(StaleDigest):
        answer(gate, token, digest="0" * 64)

    gate.refresh_from_db()
    assert gate.status == "claimed"
    assert "callback-rejected" not in factories.event_kinds(gate.run)


@pytest.mark.parametrize("token", ["", "x", "é", "\ud800", "claim-3", "0" * 40])
def test_a_wrong_token_is_not_the_owners(token: str) -> None:
    gate = factories.external_request()
    claimed(gate)

    with pytest.raises(NotOwner):
        answer(gate, token)


def test_the_token_is_worth_nothing_in_another_hand() -> None:
    gate = factories.external_request(audience={"users": ["ada", "eve"]})
    token = claimed(gate)

    with pytest.raises(NotOwner):
        answer(gate, token, principal=factories.person("eve"))


def test_a_token_without_a_claim_claims_nothing() -> None:
    gate = factories.external_request()

    with pytest.raises(NotClaimed):
        answer(gate, "0" * 40)

    assert "callback-claimed" not in factories.event_kinds(gate.run)


def test_a_question_replaced_while_it_was_held_says_so() -> None:
    old = factories.external_request(stream="s")
    token = claimed(old)
    factories.external_request(stream="s", input={"revision": "def456"})

    with pytest.raises(Superseded):
        answer(old, token)


def test_a_replaced_question_asked_again_wants_a_new_claim() -> None:
    old = factories.external_request(stream="s")
    token = claimed(old)
    new = factories.external_request(stream="s", input={"revision": "def456"})

    again = factories.external_request(stream="s")

    assert (again.pk, again.status, again.asked_seq) == (old.pk, "pending", old.asked_seq)
    new.refresh_from_db()
    assert new.status == "superseded"
    with pytest.raises(NotClaimed):
        answer(old, token)


def test_the_page_can_only_send_digest_token_and_answer() -> None:
    gate = factories.external_request()

    answer(gate, response={"approved": True, "digest": "x", "requestId": "y", "input": {}})

    gate.refresh_from_db()
    assert gate.input == {"revision": "abc123"}
