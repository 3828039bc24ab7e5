"""Rows that somebody changed in the database: nothing of them is shown or answered."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from gates import services
from gates.models import Request
from gates.projector import rebuild_requests
from gates.receipts.sealed import RowChanged
from runs.stored import RecordCallbacks
from tests import factories, flows
from tests.gates.calls import person

pytestmark = pytest.mark.django_db
ASKED, EDITED = "Approve release abc123?", "Approve everything?"
OFF = {
    "postgresql": "SET LOCAL session_replication_role = replica",
    "sqlite": "DROP TRIGGER runs_event_is_append_only",
}


@contextmanager
def with_every_right() -> Iterator[None]:
    """As the owner of the database, who can do away with its triggers."""
    with connection.cursor() as cursor:
        cursor.execute(OFF[connection.vendor])
        yield


def test_an_edited_record_is_refused_by_whoever_reads_it() -> None:
    gate = factories.external_request()
    with with_every_right(), connection.cursor() as cursor:
        cursor.execute("UPDATE runs_event SET payload = replace(payload, %s, %s)", [ASKED, EDITED])
    flows.forget()
    ada = person(factories.ada())

    with pytest.raises(ValueError, match="changed after it was created"):
        RecordCallbacks(gate.run_id).list_pending()
    with pytest.raises(ValueError, match="changed after it was created"):
        ada.post(f"/requests/{gate.pk}/claim")

    # What the refused reading left behind harms nobody who comes after it.
    gc.collect()
    assert ada.get("/workflows").status_code == 200


@pytest.mark.parametrize(
    "edit",
    [
        {"decision_text": EDITED},
        {"input": {"revision": "evil"}},
        {"response_schema": {}},
        {"gate_version": 2, "request_id": "release-approval#2#{digest}"},
        {"input": {"n": 2**60}},
    ],
)
def test_an_edited_row_is_not_shown(edit: dict[str, Any]) -> None:
    gate = factories.external_request()
    named = {"request_id": edit["request_id"].format(digest=gate.digest)} if len(edit) > 1 else {}
    Request.objects.filter(pk=gate.pk).update(**edit | named)
    client = Client()
    client.force_login(factories.user("ada"))

    for path in (f"/api/v1/requests/{gate.pk}", f"/gates/{gate.pk}/"):
        with pytest.raises(RowChanged, match=str(gate.pk)):
            client.get(path)


def test_a_rebuild_puts_an_edited_row_right() -> None:
    gate = factories.external_request()
    Request.objects.filter(pk=gate.pk).update(decision_text=EDITED)

    rebuild_requests(gate.run)

    assert person(factories.ada()).get(f"/requests/{gate.pk}").json()["decisionText"] == ASKED
    assert services.claim(gate.pk, principal=factories.ada()).token
