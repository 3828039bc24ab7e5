from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gates import services
from gates.access import Forbidden, NotVisible
from gates.errors import Cancelled, Expired
from gates.models import Request
from runs.models import Run, Step
from tests import factories
from tests.gates.later import later

pytestmark = pytest.mark.django_db


def test_a_withdrawn_question_takes_no_answer_and_its_step_fails() -> None:
    gate = factories.pending_gate()
    services.claim(gate.pk, principal=factories.ada())

    row = services.withdraw(gate.pk, principal=factories.operator(), reason="not this week")

    assert (row.status, row.closed_reason, row.holder) == ("cancelled", "not this week", "")
    assert Step.objects.get(run=gate.run, name="approve").status == "failed"
    assert Run.objects.get(pk=gate.run_id).status == Run.Status.FAILED
    with pytest.raises(Cancelled, match="not this week"):
        services.claim(gate.pk, principal=factories.ada(), even_cancelled=True)


def test_a_withdrawn_question_is_asked_again_by_asking_it() -> None:
    bot = factories.key()
    gate = factories.external_request(stream="s", by=bot)
    services.withdraw(gate.pk, principal=bot, reason="wrong build")

    again = factories.external_request(stream="s", by=bot)

    assert (again.pk, again.status, again.closed_reason) == (gate.pk, "pending", "")
    services.claim(again.pk, principal=factories.ada())


def test_only_operators_and_the_program_that_asked_withdraw() -> None:
    gate = factories.external_request(by=factories.key("bot"))

    for who in (factories.ada(), factories.ben(), factories.key("other")):
        with pytest.raises(Forbidden):
            services.withdraw(gate.pk, principal=who, reason="no")
    with pytest.raises(NotVisible):
        services.withdraw(gate.pk, principal=factories.cyd(), reason="no")

    assert Request.objects.get(pk=gate.pk).status == "pending"


def _past_its_time(gate: Request) -> None:
    later(gate.run_id, 3_601)
    # The sweep goes by the database's own clock, which nobody sets for a test.
    Request.objects.filter(pk=gate.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


def test_past_its_time_a_question_refuses_the_answer_and_says_so() -> None:
    soon = (timezone.now() + timedelta(hours=1)).isoformat()
    gate = factories.external_request(expiresAt=soon)
    token = services.claim(gate.pk, principal=factories.ada()).token
    _past_its_time(gate)

    for _ in range(2):
        with pytest.raises(Expired):
            services.submit(
                gate.pk,
                principal=factories.ada(),
                token=token,
                digest=gate.digest,
                response={"approved": True},
            )

    gate.refresh_from_db()
    assert gate.status == "expired"
    assert factories.event_kinds(gate.run).count("callback-expired") == 1
    assert "callback-submitted" not in factories.event_kinds(gate.run)


def test_the_sweep_closes_what_is_past_its_time_and_nothing_else() -> None:
    soon = (timezone.now() + timedelta(hours=1)).isoformat()
    late, early, free = (
        factories.external_request(expiresAt=soon),
        factories.external_request(expiresAt=soon),
        factories.external_request(),
    )
    _past_its_time(late)

    assert services.expire_due() == 1
    assert services.expire_due() == 0

    states = [Request.objects.get(pk=row.pk).status for row in (late, early, free)]
    assert states == ["expired", "pending", "pending"]


def test_an_answer_in_time_is_kept_when_the_sweep_comes() -> None:
    gate = factories.external_request()
    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": True},
    )
    _past_its_time(gate)

    assert services.expire_due() == 0
    assert Request.objects.get(pk=gate.pk).status == "answered"
