from __future__ import annotations

import pytest

from gates import services
from gates.access import Forbidden
from gates.errors import NotClaimed, NotOwner, ReasonMissing
from gates.models import Request
from runs.kernel.events import EventKind
from runs.models import Event
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_released_question_is_free_and_its_old_token_is_dead() -> None:
    gate = factories.pending_gate()
    ada = factories.ada()
    token = services.claim(gate.pk, principal=ada).token

    released = services.release(gate.pk, principal=ada, token=token)

    assert (released.status, released.holder, released.claim_seq) == ("pending", "", None)
    again = services.claim(gate.pk, principal=ada).token
    assert again != token
    with pytest.raises(NotOwner):
        services.release(gate.pk, principal=ada, token=token)


def test_the_holder_releases_without_showing_the_token() -> None:
    gate = factories.pending_gate()
    services.claim(gate.pk, principal=factories.ada())

    assert services.release(gate.pk, principal=factories.ada()).status == "pending"


def test_nobody_else_releases_without_the_token() -> None:
    gate = factories.pending_gate(audience={"users": ["ada", "eve"]})
    services.claim(gate.pk, principal=factories.ada())

    with pytest.raises(NotOwner):
        services.release(gate.pk, principal=factories.person("eve"))


def test_a_free_question_cannot_be_released() -> None:
    gate = factories.pending_gate()

    with pytest.raises(NotClaimed):
        services.release(gate.pk, principal=factories.ada())

    assert "callback-released" not in factories.event_kinds(gate.run)


def test_force_release_frees_the_question_and_records_the_reason() -> None:
    gate = factories.pending_gate()
    ada, operator = factories.ada(), factories.operator()
    token = services.claim(gate.pk, principal=ada).token

    freed = services.force_release(gate.pk, principal=operator, reason="  ada is away ")

    assert freed.status == "pending"
    note = Event.objects.get(run=gate.run, kind=EventKind.FORCE_RELEASED)
    assert (note.actor, note.payload["reason"]) == (operator.actor, "ada is away")
    assert note.payload["routerId"] == ada.actor
    with pytest.raises(NotClaimed):
        services.submit(
            gate.pk, principal=ada, token=token, digest=gate.digest, response={"approved": True}
        )


@pytest.mark.parametrize("reason", ["", "   ", "\n"])
def test_a_rescue_without_a_reason_is_refused(reason: str) -> None:
    gate = factories.pending_gate()
    services.claim(gate.pk, principal=factories.ada())

    with pytest.raises(ReasonMissing):
        services.force_release(gate.pk, principal=factories.operator(), reason=reason)

    assert Request.objects.get(pk=gate.pk).status == "claimed"


@pytest.mark.parametrize("who", ["ada", "ben"])
def test_only_operators_force_release(who: str) -> None:
    gate = factories.pending_gate()
    services.claim(gate.pk, principal=factories.ada())

    with pytest.raises(Forbidden):
        services.force_release(gate.pk, principal=getattr(factories, who)(), reason="why not")

    assert Request.objects.get(pk=gate.pk).status == "claimed"
