"""Who stops in the middle of a turn keeps its run for a while, not for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from django.db import DatabaseError, close_old_connections

from runs import record
from runs.kernel.events import EventKind
from runs.models import Run
from runs.turns import locking
from tests import flows
from tests.runs import scenarios

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(locking, "SILENT_MS", 200)
    locking._select.cache_clear()
    yield
    locking._select.cache_clear()


def log(turn: record.Turn, message: str) -> None:
    turn.append(EventKind.LOG, (), {"level": "info", "message": message})


def test_the_database_takes_a_run_back_from_one_who_stopped_in_the_middle_of_its_turn() -> None:
    run = flows.start(scenarios.ok("alone"))
    holds, over = threading.Event(), threading.Event()
    found: list[DatabaseError] = []

    def stops() -> None:
        try:
            with record.turn(run.pk) as turn:
                log(turn, "the one who stopped")
                holds.set()
                assert over.wait(60)
        except DatabaseError as error:
            found.append(error)
        finally:
            close_old_connections()

    with flows.in_background(stops):
        assert holds.wait(60)
        with record.turn(run.pk) as turn:
            log(turn, "the one who came after")
        over.set()

    assert len(found) == 1
    told = [event.fields["message"] for event in flows.events(run, EventKind.LOG)]
    assert told == ["the one who came after"]
    flows.work(run)
    assert flows.fresh(run).status == Run.Status.PASSED
