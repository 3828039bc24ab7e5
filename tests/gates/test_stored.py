"""`create_stored_callback_client` over a run of the service (gates.md section 8)."""

from __future__ import annotations

import uuid

import pytest

from gates import create_stored_callback_client, direct_router
from runs.record import RunUnknown
from runs.shapes.approval import approval
from tests import flows

pytestmark = pytest.mark.django_db


def test_a_runs_id_alone_gives_the_client_of_its_record() -> None:
    run = flows.start(approval("ok", "Ship it?"))
    for given in (run.pk, str(run.pk)):
        (request,) = create_stored_callback_client(given).list_pending()
    client = create_stored_callback_client(run.pk)
    assert direct_router(client, request, "router", lambda _request: {"approved": True}).ok

    kinds = [event["kind"] for event in create_stored_callback_client(run.pk).history()]
    assert kinds == ["callback-requested", "callback-claimed", "callback-submitted"]


def test_a_run_that_is_not_there_has_no_client() -> None:
    with pytest.raises(RunUnknown):
        create_stored_callback_client(uuid.uuid4())
