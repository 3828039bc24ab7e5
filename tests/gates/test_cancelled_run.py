from __future__ import annotations

from typing import Any

import pytest

from gates import queries, services
from gates.errors import Cancelled
from gates.models import Request
from runs import services as runs_services
from runs.models import Run
from tests import factories

pytestmark = pytest.mark.django_db


def cancelled_gate(*, held: bool = False) -> tuple[Request, str]:
    gate = factories.pending_gate()
    token = services.claim(gate.pk, principal=factories.ada()).token if held else ""
    runs_services.cancel_run(gate.run_id, actor="user:0", surface="browser")
    gate.refresh_from_db()
    return gate, token


@pytest.mark.parametrize("held", [False, True])
def test_a_cancelled_run_takes_its_questions_out_of_the_inbox(held: bool) -> None:
    gate, _ = cancelled_gate(held=held)

    assert (gate.status, gate.holder, gate.claim_seq) == ("cancelled", "", None)
    for tab in ("mine", "unclaimed", "others"):
        assert queries.inbox(factories.ada(), tab).rows == []


def test_it_is_answered_only_on_purpose_and_that_starts_nothing() -> None:
    gate, _ = cancelled_gate()
    ada = factories.ada()
    given: dict[str, Any] = {"token": None, "digest": gate.digest, "response": {"approved": True}}

    with pytest.raises(Cancelled, match="answered from the run's page"):
        services.submit(gate.pk, principal=ada, **given)
    receipt = services.submit(gate.pk, principal=ada, even_cancelled=True, **given)

    assert receipt.next == "recorded"
    assert Run.objects.get(pk=gate.run_id).status == Run.Status.CANCELLED
    assert Request.objects.get(pk=gate.pk).status == "answered"


def test_the_claim_of_a_cancelled_run_keeps_nobody_from_answering() -> None:
    gate, _ = cancelled_gate(held=True)
    gate.audience.tokens.create(token="user:eve")
    eve = factories.person("eve")

    services.submit(
        gate.pk,
        principal=eve,
        token=None,
        digest=gate.digest,
        response={"approved": False},
        even_cancelled=True,
    )

    assert factories.event_kinds(gate.run)[-3:] == [
        "callback-released",
        "callback-claimed",
        "callback-submitted",
    ]


def test_a_resumed_run_puts_its_question_back() -> None:
    gate, _ = cancelled_gate()

    runs_services.resume_run(gate.run_id, actor="user:0", surface="browser")

    gate.refresh_from_db()
    assert gate.status == "pending"
    assert [row.id for row in queries.inbox(factories.ada(), "unclaimed").rows] == [gate.pk]


def test_a_resumed_run_honours_the_claim_that_stood() -> None:
    gate, token = cancelled_gate(held=True)

    runs_services.resume_run(gate.run_id, actor="user:0", surface="browser")

    gate.refresh_from_db()
    assert (gate.status, gate.holder) == ("claimed", factories.ada().actor)
    receipt = services.submit(
        gate.pk,
        principal=factories.ada(),
        token=token,
        digest=gate.digest,
        response={"approved": True},
    )
    assert receipt.next == "resumed"


def test_an_answer_given_while_cancelled_is_used_by_the_resumed_run() -> None:
    gate, _ = cancelled_gate()
    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": True},
        even_cancelled=True,
    )

    runs_services.resume_run(gate.run_id, actor="user:0", surface="browser")

    assert gate.run.steps.get(name="approve").status == "passed"
    assert factories.event_kinds(gate.run).count("callback-requested") == 1
