"""What a message to a worker brings along, and what does not depend on it."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs import registry, tasks
from runs.attempts import worker
from runs.attempts.starts import Due, Start
from runs.models import Run
from runs.shapes.steps import fn_job
from runs.turns import recent
from tests import flows

pytestmark = pytest.mark.django_db(transaction=True)
postgres = pytest.mark.postgres


@pytest.fixture
def run() -> Run:
    return flows.start(fn_job("one", lambda ctx: "done"))


@pytest.fixture
def asked_with(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, UUID | None]]:
    """The calls that messages made of the worker."""
    found: list[tuple[int, UUID | None]] = []

    def execute(attempt: int, *, run_id: UUID | None = None) -> None:
        found.append((attempt, run_id))

    monkeypatch.setattr(worker, "execute", execute)
    return found


def claimed_from(due: Due | None) -> bool:
    assert due is not None
    made = registry.published(due.workflow)
    assert made is not None
    return worker.claim(Start(due, made))


@postgres
def test_a_step_whose_run_is_named_is_begun_with_one_reading_and_one_writing(run: Run) -> None:
    (attempt,) = flows.ready(run)

    with CaptureQueriesContext(connection) as queries:
        assert claimed_from(Due.find(attempt, run.pk))

    assert len(queries) == 2
    assert flows.kinds(run)[-1] == "job:start"


@pytest.mark.parametrize("said", ["its run", "nothing", "another run", "no run at all"])
def test_whatever_a_message_says_of_its_run_the_step_is_done_once(run: Run, said: str) -> None:
    (attempt,) = flows.ready(run)
    other = flows.ran(fn_job("other", lambda ctx: "done"))
    named = {"its run": run.pk, "another run": other.pk, "no run at all": uuid4()}.get(said)

    for _ in range(2):
        worker.execute(attempt, run_id=named)

    assert flows.fresh(run).status == "passed"
    assert flows.kinds(run).count("job:start") == flows.kinds(run).count("job:end") == 1
    assert flows.kinds(other).count("job:end") == 1


def test_both_readings_tell_the_same_of_a_start(run: Run) -> None:
    (attempt,) = flows.ready(run)
    alone, together = Due.find(attempt), Due.find(attempt, run.pk)

    def facts(due: Due | None) -> tuple[Any, ...]:
        assert due is not None
        named = (due.pk, due.run_id, due.workflow, due.definition)
        return (*named, due.path, due.task, due.number, due.trace, due.others_held_back)

    assert facts(alone) == facts(together)
    worker.execute(attempt)
    assert Due.find(attempt) is Due.find(attempt, run.pk) is None


@postgres
def test_a_run_at_which_others_are_faster_is_not_read_for_nothing(run: Run) -> None:
    (attempt,) = flows.ready(run)
    recent.lost(run.pk)

    due = Due.find(attempt, run.pk)

    assert due is not None
    assert not due.is_seen
    assert claimed_from(due)


@pytest.mark.parametrize("told", [None, "", "no id", "7", 7])
def test_a_message_that_names_no_run_is_a_message(
    asked_with: list[tuple[int, UUID | None]], told: Any
) -> None:
    headers = {} if told is None else {"obversa_run": told}
    tasks.execute.apply((7,), throw=True, **headers)

    assert asked_with == [(7, None)]
