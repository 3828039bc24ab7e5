"""Out of office: a deputy answers what the person could, for a time, and nothing more."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gates import access, queries, services
from gates.answers import deputies
from gates.errors import AlreadyAnswered, DeputyRefused
from gates.models import Request
from gates.principals import Principal
from gates.projector import rebuild_requests
from tests import factories

pytestmark = pytest.mark.django_db
WEEK = timedelta(days=7)
YES = {"approved": True}


def away(person: str = "ada", deputy: str = "dan", **facts: Any) -> Principal:
    """`person` is out of office; the deputy as a caller who has asked for nothing yet."""
    factories.user(deputy)
    until = facts.pop("until", timezone.now() + WEEK)
    deputies.name_deputy(factories.user(person, **facts), deputy, until)
    return factories.person(deputy)


def answer(gate: Request, who: Principal) -> services.Receipt:
    return services.submit(gate.pk, principal=who, token=None, digest=gate.digest, response=YES)


def test_a_deputy_sees_and_answers_what_the_person_was_asked() -> None:
    gate = factories.pending_gate(needed=1)
    dan = away()

    assert [row.id for row in queries.inbox(dan).rows] == [gate.pk]
    assert answer(gate, dan).next == "resumed"


def test_the_record_says_in_whose_place() -> None:
    gate = factories.pending_gate()

    answer(gate, away())

    [row] = gate.responses.all()
    assert (row.actor, row.deputy_for) == (factories.person("dan").actor, factories.ada().actor)
    assert "callback-deputized" in factories.event_kinds(gate.run)
    assert rebuild_requests(gate.run) == 0


def test_who_answers_what_is_theirs_anyway_is_nobodys_deputy() -> None:
    gate = factories.pending_gate(audience={"users": ["ada", "dan"]})

    answer(gate, away())

    assert gate.responses.get().deputy_for == ""


def test_it_is_over_in_its_time() -> None:
    gate = factories.pending_gate()
    dan = away()
    from gates.models import Deputy

    Deputy.objects.update(until=timezone.now() - timedelta(seconds=1))

    with pytest.raises(access.NotVisible):
        answer(gate, factories.person("dan"))
    # Rights are read anew under the lock, whatever an open page had read.
    assert access.may_see(dan, gate) is False


def test_nobody_stands_in_for_who_has_left() -> None:
    gate = factories.pending_gate()
    dan = away()
    factories.user("ada").__class__.objects.filter(username="ada").update(is_active=False)

    with pytest.raises(access.NotVisible):
        answer(gate, dan)


def test_a_deputy_of_a_deputy_is_nobody() -> None:
    gate = factories.pending_gate()
    away("ada", "dan")

    with pytest.raises(access.NotVisible):
        answer(gate, away("dan", "eve"))


def test_a_deputy_gets_no_other_right_of_the_person() -> None:
    factories.user("oda", perms=["gates.view_request", "gates.change_request"])
    gate = factories.pending_gate()
    dan = away("oda", "dan")

    assert not access.may_operate(dan)
    assert not access.sees_all(dan)
    with pytest.raises(access.NotVisible):
        answer(gate, dan)


def test_the_keys_of_a_deputy_stand_in_for_nobody() -> None:
    gate = factories.pending_gate()
    dan = away()

    with pytest.raises(access.NotVisible):
        answer(gate, factories.key("dans", user=dan.user))


def test_who_asked_is_no_deputy_for_their_own_question() -> None:
    dan = away()
    job = factories.release_job(exclude_requester=True)
    gate = factories.pending_gate(factories.make_run(job, started_by=dan.actor))

    with pytest.raises(access.SelfApproval):
        answer(gate, dan)


def test_who_asked_lends_nobody_what_they_may_not_answer_themselves() -> None:
    job = factories.release_job(exclude_requester=True)
    gate = factories.pending_gate(factories.make_run(job, started_by=factories.ada().actor))

    with pytest.raises(access.NotVisible):
        answer(gate, away())


def test_of_several_a_person_and_their_deputy_are_one() -> None:
    gate = factories.pending_gate(needed=2, audience={"users": ["ada", "ben"]})
    answer(gate, away())

    with pytest.raises(AlreadyAnswered, match="in your place"):
        answer(gate, factories.ada())

    assert answer(gate, factories.person("ben")).settled


def test_of_several_nobody_answers_for_who_has_answered() -> None:
    gate = factories.pending_gate(needed=2, audience={"users": ["ada", "ben"]})
    answer(gate, factories.ada())

    with pytest.raises(AlreadyAnswered):
        answer(gate, away())


@pytest.mark.parametrize(
    ("deputy", "days", "field"),
    [("nobody here", 1, "deputy"), ("ada", 1, "deputy"), ("dan", 0, "until"), ("dan", 91, "until")],
)
def test_a_deputy_is_somebody_else_and_not_for_ever(deputy: str, days: int, field: str) -> None:
    factories.user("dan")

    with pytest.raises(DeputyRefused) as refused:
        deputies.name_deputy(factories.user("ada"), deputy, timezone.now() + timedelta(days=days))

    assert refused.value.field == field
