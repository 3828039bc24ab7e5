"""Rows are a fold of the record: made anew they are the same rows."""

from __future__ import annotations

from typing import Any

import pytest

from gates import services
from gates.models import Request, Response
from gates.projector import rebuild_requests
from runs import record
from runs import services as runs_services
from runs.models import Run
from runs.stored import RecordCallbacks
from tests import factories

pytestmark = pytest.mark.django_db


def rows(run: Run) -> list[dict[str, Any]]:
    asked = Request.objects.filter(run=run).order_by("pk").values()
    answers = Response.objects.filter(request__run=run).order_by("pk").values()
    return [dict(row) for row in asked] + [dict(row) for row in answers]


def busy_stream() -> Run:
    """Everything that can happen to a question, in one stream."""
    ada, operator, bot = factories.ada(), factories.operator(), factories.key()
    ask: dict[str, Any] = {"stream": "busy", "by": bot}
    first = factories.external_request(**ask)
    services.claim(first.pk, principal=ada)
    services.force_release(first.pk, principal=operator, reason="away")
    factories.external_request(**ask, input={"revision": "def456"}, priority=5)
    factories.external_request(**ask)
    services.claim(first.pk, principal=ada)
    services.release(first.pk, principal=ada)
    services.submit(
        first.pk, principal=ada, token=None, digest=first.digest, response={"approved": True}
    )
    gone = factories.external_request(**ask, gate_id="gone", text="a\0b", dueAt="2031-01-01T00:00Z")
    services.withdraw(gone.pk, principal=operator, reason="a\0b")
    held = factories.external_request(**ask, gate_id="held", excludeRequester=True)
    services.claim(held.pk, principal=ada)
    return first.run


def test_rows_made_anew_are_the_same_rows() -> None:
    run = busy_stream()
    before = rows(run)

    assert rebuild_requests(run) == 0
    assert rows(run) == before


def test_rows_of_a_cancelled_and_resumed_run_are_the_same() -> None:
    gate = factories.pending_gate()
    services.claim(gate.pk, principal=factories.ada())
    runs_services.cancel_run(gate.run_id, actor="user:0", surface="browser")
    assert rebuild_requests(gate.run) == 0
    runs_services.resume_run(gate.run_id, actor="user:0", surface="browser")

    assert rebuild_requests(gate.run) == 0
    assert Request.objects.get(pk=gate.pk).status == "claimed"


def test_what_was_changed_by_hand_is_put_right_and_keeps_its_key() -> None:
    run = busy_stream()
    before = rows(run)
    Request.objects.filter(run=run, gate_id="held").update(
        status="pending", holder="", claim_seq=None, decision_text="edited", priority=7
    )
    Request.objects.filter(run=run, gate_id="gone").update(closed_reason="other")
    Response.objects.filter(request__run=run).update(response={"approved": False})

    assert rebuild_requests(run) == 3
    assert rows(run) == before


def test_rows_that_are_gone_come_back_and_rows_without_a_record_go() -> None:
    run = busy_stream()
    count = len(rows(run))
    Request.objects.filter(run=run, gate_id="held").delete()
    stray = Request.objects.filter(run=run, gate_id="gone").get()
    stray.pk = None
    stray.request_id = "stray#1#x"
    stray.save(force_insert=True)

    assert rebuild_requests(run) == 2
    assert len(rows(run)) == count


def test_a_question_of_the_stored_client_gets_its_row() -> None:
    run = factories.make_run()
    client = RecordCallbacks(run.pk)
    from runs.kernel.gate import create_callback_gate

    request = create_callback_gate(
        gate_id="x" * 700 + "\0",
        gate_version=1,
        decision_text="?\0",
        response_schema={},
        input=None,
    )
    client.post(request)
    token = client.claim(request.request_id, "router").claim_token
    assert token is not None

    row = Request.objects.get(run=run, digest=request.digest)
    assert (row.status, row.holder, row.audience_id) == ("claimed", "router", run.audience_id)
    assert client.submit(request.request_id, token, "router", request.digest, {"a": 1}).ok
    row.refresh_from_db()
    assert (row.status, row.answered_by) == ("answered", "router")
    assert rebuild_requests(run) == 0


def test_a_run_that_nobody_asked_anything_costs_the_projector_nothing(
    django_assert_num_queries: Any,
) -> None:
    run = factories.make_run()
    from gates.projector import project

    with record.turn(run.pk) as turn:
        turn.append("log", (), {"level": "info", "message": "hello"})
        with django_assert_num_queries(0):
            project(turn)


def test_an_audience_nobody_can_read_is_for_those_who_repair_things() -> None:
    run = factories.make_run()
    from runs.kernel.gate import create_callback_gate

    request = create_callback_gate(
        gate_id="odd", gate_version=1, decision_text="?", response_schema={}, input=None
    )
    with record.turn(run.pk) as turn:
        turn.append("callback-requested", (), {"request": request.to_wire()})
        routed = {"requestId": request.request_id, "purpose": "gate", "audience": {"users": "ada"}}
        turn.append("callback-routed", (), routed)

    row = Request.objects.get(run=run, gate_id="odd")
    tokens = list(row.audience.tokens.values_list("token", flat=True))
    assert tokens == ["perm:gates.change_request"]
