"""Several people answer one question: distinct people, one of each team where that is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from gates import services
from gates.access import Forbidden
from gates.errors import (
    AlreadyAnswered,
    AlreadyClaimed,
    AnswerRefused,
    StaleDigest,
    TeamHasAnswered,
)
from gates.models import Request, Response
from gates.principals import Principal
from gates.projector import rebuild_requests
from gates.stored import create_stored_callback_client
from runs import services as runs_services
from runs.models import Run
from tests import factories, flows

pytestmark = pytest.mark.django_db

YES: dict[str, Any] = {"approved": True}
TEAM: dict[str, Any] = {"groups": ["Team"], "keys": ["bot"]}
NO: dict[str, Any] = {"approved": False, "note": "the changelog is empty"}


def person(name: str, *teams: str) -> Principal:
    return factories.person(name, groups=["Team", *teams])


def answer(gate: Request, who: Principal, response: Any = YES, **more: Any) -> services.Receipt:
    given = {"token": None, "digest": gate.digest, **more}
    return services.submit(gate.pk, principal=who, response=response, **given)


def two_of(**more: Any) -> Request:
    return factories.pending_gate(needed=2, audience=TEAM, **more)


def kinds(gate: Request) -> list[str]:
    return [kind for kind in factories.event_kinds(gate.run) if kind != "callback-routed"]


def test_the_question_stays_open_until_the_second_person_has_answered() -> None:
    gate = two_of()

    first = answer(gate, person("ada"))
    gate.refresh_from_db()
    assert (gate.status, gate.needed) == ("pending", 2)
    assert (first.next, first.responded, first.settled) == ("recorded", 1, False)
    assert gate.run.status == Run.Status.WAITING

    second = answer(gate, person("ben"))
    gate.refresh_from_db()
    assert (gate.status, gate.how) == ("answered", "answered")
    assert (second.next, second.responded, second.settled) == ("resumed", 2, True)
    assert kinds(gate) == [
        "callback-requested",
        "callback-responded",
        "callback-responded",
        "callback-claimed",
        "callback-submitted",
    ]
    assert [row.actor for row in gate.responses.all()] == [
        person("ada").actor,
        person("ben").actor,
    ]


def test_the_answer_that_the_step_gets_is_the_one_that_was_needed_last() -> None:
    gate = two_of()
    answer(gate, person("ada"), {"approved": True, "note": "first"})
    answer(gate, person("ben"), {"approved": True, "note": "last"})

    [ended] = flows.events(gate.run, "job:end")
    assert ended.fields["outcome"]["data"] == {"approved": True, "note": "last"}


def test_the_first_no_ends_it() -> None:
    gate = factories.pending_gate(needed=3, audience=TEAM)
    answer(gate, person("ada"))

    receipt = answer(gate, person("ben"), NO)

    gate.refresh_from_db()
    assert (receipt.settled, receipt.responded, gate.status) == (True, 2, "answered")
    assert gate.run.status == Run.Status.FAILED
    with pytest.raises(AlreadyAnswered):
        answer(gate, person("cyd"))
    assert gate.responses.count() == 2


def test_nobody_answers_twice() -> None:
    gate = two_of()
    answer(gate, person("ada"))

    with pytest.raises(AlreadyAnswered, match="waits for one more person") as refused:
        answer(gate, person("ada"), NO)
    with pytest.raises(AlreadyAnswered):
        services.claim(gate.pk, principal=person("ada"))

    gate.refresh_from_db()
    assert refused.value.details["response"] == YES
    assert (gate.status, gate.responses.count()) == ("pending", 1)


def test_the_same_answer_once_more_is_no_second_one() -> None:
    gate = two_of()
    first = answer(gate, person("ada"))

    again = answer(gate, person("ada"))

    assert again.already_resolved
    assert (again.seq, again.responded, again.settled) == (first.seq, 1, False)


def test_a_key_of_ones_own_is_the_same_person() -> None:
    ada = person("ada")
    assert ada.user is not None
    gate = two_of()
    answer(gate, factories.key("laptop", user=ada.user))

    with pytest.raises(AlreadyAnswered):
        answer(gate, ada, NO)

    row = gate.responses.get()
    assert (row.actor, row.surface) == (ada.actor, "api")


def test_a_key_of_nobody_is_no_person() -> None:
    gate = two_of()

    with pytest.raises(Forbidden, match="distinct people"):
        answer(gate, factories.key("bot"))

    assert gate.responses.count() == 0
    assert factories.event_kinds(gate.run)[-1] == "callback-refused"


def test_a_wrong_answer_counts_for_nothing() -> None:
    gate = two_of()

    with pytest.raises(AnswerRefused):
        answer(gate, person("ada"), {"approved": "yes"})
    with pytest.raises(StaleDigest):
        answer(gate, person("ada"), digest="0" * 64)

    gate.refresh_from_db()
    assert (gate.status, gate.responses.count()) == ("pending", 0)
    assert answer(gate, person("ada")).responded == 1


def test_who_claims_it_answers_next_and_frees_it_for_the_others() -> None:
    gate = two_of()
    token = services.claim(gate.pk, principal=person("ada")).token

    with pytest.raises(AlreadyClaimed):
        answer(gate, person("ben"))
    answer(gate, person("ada"), token=token)

    gate.refresh_from_db()
    assert (gate.status, gate.holder) == ("pending", "")
    assert answer(gate, person("ben")).settled


def test_one_of_each_team_and_nobody_for_two() -> None:
    both = factories.pending_gate(one_per_team=True, audience={"groups": ["Security", "Release"]})
    answer(both, person("ada", "Security", "Release"))

    both.refresh_from_db()
    assert (both.status, both.needed) == ("pending", 2)
    assert answer(both, person("ben", "Security")).settled


def test_a_second_one_of_a_team_has_to_leave_it_to_the_other_team() -> None:
    gate = factories.pending_gate(one_per_team=True, audience={"groups": ["Security", "Release"]})
    answer(gate, person("ada", "Security"))

    with pytest.raises(TeamHasAnswered):
        answer(gate, person("ben", "Security"))

    assert gate.responses.count() == 1
    assert answer(gate, person("cyd", "Release")).settled


def test_asked_anew_after_it_was_withdrawn_it_starts_from_nothing() -> None:
    asker = factories.key("asker")
    ask: dict[str, Any] = {"by": asker, "stream": "s", "audience": {}, "needed": 2}
    gate = factories.external_request(**ask)
    answer(gate, person("ada"))
    services.withdraw(gate.pk, principal=factories.operator(), reason="wrong build")

    again = factories.external_request(**ask)

    assert (again.pk, again.status, again.responses.count()) == (gate.pk, "pending", 0)
    assert answer(again, person("ada")).responded == 1
    assert rebuild_requests(again.run) == 0


def test_the_rows_are_what_the_record_makes_of_them() -> None:
    gate = two_of()
    answer(gate, person("ada"))
    assert rebuild_requests(gate.run) == 0
    answer(gate, person("ben"))
    assert rebuild_requests(gate.run) == 0

    Response.objects.filter(request=gate).delete()
    assert rebuild_requests(gate.run) == 2
    assert gate.responses.count() == 2


def test_an_answer_of_several_after_a_cancel_is_kept_and_starts_nothing() -> None:
    gate = two_of()
    answer(gate, person("ada"))
    runs_services.cancel_run(gate.run_id, actor="user:0")

    receipt = answer(gate, person("ben"), even_cancelled=True)

    gate.refresh_from_db()
    assert (receipt.next, receipt.settled, gate.status) == ("recorded", True, "answered")
    assert gate.run.status == Run.Status.CANCELLED


def test_code_of_a_step_answers_nothing_that_several_people_have_to() -> None:
    gate = two_of()
    client = create_stored_callback_client(gate.run_id)
    claim = client.claim(gate.request_id, "step:sneaky")

    result = client.submit(gate.request_id, str(claim.claim_token), "step:sneaky", gate.digest, YES)

    assert (result.ok, result.kind) == (False, "invalid")
    assert "needs 2 people" in str(result.reason)
    gate.refresh_from_db()
    assert (gate.status, gate.responses.count()) == ("claimed", 0)
