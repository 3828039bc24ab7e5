"""Whoever started a run is kept from answering where that is wanted, and its own key always."""

from __future__ import annotations

from typing import Any

import pytest

from gates import access, services
from gates.models import Request
from gates.principals import Principal
from tests import factories

pytestmark = pytest.mark.django_db
EVERYBODY: dict[str, Any] = {"groups": ["Team"], "keys": ["bot", "other"]}


def eve() -> Principal:
    return factories.person("eve", groups=["Team"])


def started_by(who: str, **ask: Any) -> Request:
    job = factories.release_job(audience=EVERYBODY, **ask)
    return factories.pending_gate(factories.make_run(job, started_by=who))


def answer(gate: Request, who: Principal) -> services.Receipt:
    return services.submit(
        gate.pk, principal=who, token=None, digest=gate.digest, response={"approved": True}
    )


def test_who_started_a_run_may_answer_it_unless_it_is_said_otherwise() -> None:
    assert answer(started_by(eve().actor), eve()).next == "resumed"


@pytest.mark.parametrize("ask", [{"exclude_requester": True}, {"risk": "high"}])
def test_who_started_it_is_kept_from_what_is_of_high_risk_or_says_so(ask: dict[str, Any]) -> None:
    gate = started_by(eve().actor, **ask)

    with pytest.raises(access.SelfApproval):
        services.claim(gate.pk, principal=eve())
    with pytest.raises(access.SelfApproval):
        answer(gate, eve())

    kinds = factories.event_kinds(gate.run)
    assert kinds.count("callback-refused") == 2
    assert "callback-submitted" not in kinds
    assert answer(gate, factories.person("dan", groups=["Team"])).next == "resumed"


def test_a_gate_of_high_risk_may_let_its_asker_answer() -> None:
    gate = started_by(eve().actor, risk="high", exclude_requester=False)

    assert answer(gate, eve()).next == "resumed"


def test_a_key_of_ones_own_is_no_way_round() -> None:
    gate = started_by(eve().actor, exclude_requester=True)

    with pytest.raises(access.SelfApproval):
        answer(gate, factories.key("eves-own", user=eve().user))


def test_a_run_that_ones_own_key_started_is_ones_own() -> None:
    factories.key("eves-own", user=eve().user)
    gate = started_by("key:eves-own/ci", exclude_requester=True)

    with pytest.raises(access.SelfApproval):
        answer(gate, eve())


@pytest.mark.parametrize("starter", ["key:bot", "key:bot/a"])
def test_the_key_that_started_a_run_never_answers_it(starter: str) -> None:
    """Whatever the gate says: a model that holds the key would say yes to itself (D4)."""
    gate = started_by(starter, exclude_requester=False)

    for suffix in ("", "b"):
        bot = factories.key("bot")
        who = Principal.for_key("bot", ["claim", "answer"], None, suffix) if suffix else bot
        with pytest.raises(access.SelfApproval):
            services.claim(gate.pk, principal=who)

    gate.refresh_from_db()
    assert gate.status == "pending"
    assert factories.event_kinds(gate.run).count("callback-refused") == 2
    assert answer(gate, factories.key("other")).next == "resumed"
