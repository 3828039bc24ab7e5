"""An answer is decided on one reading, and on a new one when somebody was faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gates import access, services
from gates.answers import looking
from gates.errors import AlreadyClaimed
from gates.models import Request
from gates.principals import Principal
from runs.kernel.events import EventKind
from tests import factories, flows

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]
YES = {"approved": True, "note": "fine"}


def answer(gate: Request, who: Principal) -> Any:
    return services.submit(gate.pk, principal=who, token=None, digest=gate.digest, response=YES)


def test_an_answer_is_one_reading_and_one_statement() -> None:
    gate, who = factories.pending_gate(), factories.ada()

    with CaptureQueriesContext(connection) as queries:
        receipt = answer(gate, who)

    assert [query["sql"].split()[0] for query in queries] == ["SELECT", "WITH"]
    gate.refresh_from_db()
    assert gate.status == Request.Status.ANSWERED
    assert receipt.seq == flows.events(gate.run, EventKind.SUBMITTED)[0].seq


@pytest.mark.parametrize("shown", [True, False])
def test_the_runs_record_is_known_whatever_this_process_has_shown(shown: bool) -> None:
    gate, who = factories.pending_gate(), factories.ada()
    flows.forget()
    if shown:
        access.find(factories.ada(), gate.pk)

    answer(gate, who)

    gate.refresh_from_db()
    assert gate.status == Request.Status.ANSWERED


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> None:
    """Do this after the one reading and before the turn."""
    look = looking.look

    def looked(*given: Any) -> Any:
        sight = look(*given)
        assert sight is not None
        monkeypatch.setattr(looking, "look", look)
        act()
        return sight

    monkeypatch.setattr(looking, "look", looked)


def test_whoever_claims_meanwhile_is_not_overtaken(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, who = factories.pending_gate(), factories.ada()
    other = factories.key("of-ada", user=factories.user("ada"))
    meanwhile(monkeypatch, lambda: services.claim(gate.pk, principal=other))

    with pytest.raises(AlreadyClaimed):
        answer(gate, who)

    gate.refresh_from_db()
    assert gate.holder == other.actor
    assert not flows.events(gate.run, EventKind.SUBMITTED)


def test_a_turn_that_is_made_again_reads_the_rights_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, who, other = factories.pending_gate(), factories.ada(), factories.ada()

    def act() -> None:
        services.claim(gate.pk, principal=other)
        services.release(gate.pk, principal=other)
        User.objects.filter(username="ada").update(is_active=False)

    meanwhile(monkeypatch, act)
    with pytest.raises(access.Forbidden):
        answer(gate, who)

    assert not flows.events(gate.run, EventKind.SUBMITTED)
    assert flows.events(gate.run, EventKind.REFUSED)


def test_rights_that_a_caller_has_read_before_are_read_anew() -> None:
    gate, who = factories.pending_gate(), factories.ada()
    assert who.is_in(gate.audience_id)
    User.objects.filter(username="ada").update(is_active=False)

    with pytest.raises(access.Forbidden):
        answer(gate, who)

    assert not flows.events(gate.run, EventKind.SUBMITTED)


def test_what_was_read_long_ago_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, who = factories.pending_gate(), factories.ada()
    monkeypatch.setattr(looking, "_FRESH_SECONDS", 0.0)
    meanwhile(monkeypatch, lambda: User.objects.filter(username="ada").update(is_active=False))

    with pytest.raises(access.Forbidden):
        answer(gate, who)


def test_who_may_not_see_a_question_is_told_of_none() -> None:
    gate = factories.pending_gate()

    with pytest.raises(access.NotVisible):
        answer(gate, factories.cyd())

    assert not flows.events(gate.run, EventKind.REFUSED)


def test_a_key_is_looked_up_anew_and_its_persons_rights_are_not() -> None:
    gate, who = factories.pending_gate(), factories.key("of-ada", user=factories.user("ada"))

    with CaptureQueriesContext(connection) as queries:
        answer(gate, who)

    begins = [query["sql"].split()[0] for query in queries]
    assert begins == ["SELECT", "SELECT", "WITH"]
    gate.refresh_from_db()
    assert gate.status == Request.Status.ANSWERED
