"""The tables are empty after a test that committed, and what keeps events is still there."""

from __future__ import annotations

import threading

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from runs.models import Event, Run
from runs.shapes.steps import fn_job
from tests import flows

pytestmark = pytest.mark.django_db(transaction=True)


def flush() -> None:
    """As after a test (django.test.TransactionTestCase)."""
    call_command(
        "flush",
        verbosity=0,
        interactive=False,
        reset_sequences=False,
        allow_cascade=False,
        inhibit_post_migrate=True,
    )


def test_it_is_empty_and_events_cannot_be_deleted_again() -> None:
    flows.ran(fn_job("one", lambda _ctx: None))
    assert Event.objects.exists()

    flush()

    assert not Event.objects.exists()
    assert not Run.objects.exists()
    flows.ran(fn_job("one", lambda _ctx: None))
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM runs_event")


def test_it_waits_for_who_holds_a_row() -> None:
    run = flows.ran(fn_job("one", lambda _ctx: None))
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            row = Run.objects.select_for_update().get(pk=run.pk)
            held.set()
            go_on.wait(20)
            row.save()

    def empty() -> None:
        try:
            flush()
        finally:
            connection.close()

    with flows.in_background(hold):
        assert held.wait(20)
        with flows.in_background(empty) as emptying:
            emptying.join(0.2)
            assert emptying.is_alive()
            go_on.set()

    assert not Run.objects.exists()
