from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, transaction

from runs import record
from runs.models import Artifact, Attempt, Event, Run, Step
from runs.shapes.steps import fn_job
from runs.turns import statements
from runs.turns.clock import moment_of
from tests import flows

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


@pytest.fixture
def run() -> Run:
    return flows.start(fn_job("one", str))


def made(model: Any, run: Run) -> dict[str, Any]:
    """A row with no more columns than it needs."""
    rows: dict[Any, dict[str, Any]] = {
        Step: {"run_id": run.pk, "path": ["a"], "name": "a", "kind": "fn", "position": 1},
        Attempt: {"run_id": run.pk, "path": ["a"], "number": 1, "ready_at": NOW, "sent_at": NOW},
        Event: {"run_id": run.pk, "seq": 99, "kind": "note", "at": NOW},
        Artifact: {
            "run_id": run.pk,
            "digest": "d",
            "name": "n",
            "media_type": "m",
            "size": 1,
            "seq": 5,
            "created_at": NOW,
        },
    }
    return rows[model]


@pytest.mark.parametrize("model", [Step, Attempt, Event, Artifact])
def test_a_row_gets_the_same_defaults_as_from_the_orm(model: type[Step], run: Run) -> None:
    columns = made(model, run)

    (key,) = statements.insert(model, [columns], returning=True)

    found = statements.columns_of(model.objects.get(pk=key))
    expected = statements.columns_of(model(**columns)) | {"id": key}
    assert found == expected


def test_what_is_read_is_what_the_orm_reads(run: Run) -> None:
    found = statements.lock(Run, pk=run.pk)

    assert found is not None
    read, now = found
    assert statements.columns_of(read) == statements.columns_of(flows.fresh(run))
    assert read._state.adding is False
    assert abs(record.database_now() - moment_of(now)).total_seconds() < 20
    assert statements.lock(Run, pk=UUID(int=7)) is None


def test_rows_come_by_their_columns(run: Run) -> None:
    rows = statements.rows(Step, run_id=run.pk, kind="fn")

    assert rows == list(Step.objects.filter(run=run))
    assert statements.rows(Step, run_id=run.pk, kind="nothing") == []


def test_a_change_counts_the_rows_it_found(run: Run) -> None:
    changes = {"status": "lost", "ended_at": NOW}

    assert statements.update(Attempt, changes, run_id=run.pk, status="done") == 0
    assert statements.update(Attempt, changes, run_id=run.pk, status="ready") == 1

    attempt = Attempt.objects.get(run=run)
    assert (attempt.status, attempt.ended_at) == ("lost", NOW)


def test_a_row_that_is_there_gets_the_named_columns_alone(run: Run) -> None:
    columns = {"run_id": run.pk, "path": [], "name": "other", "kind": "x", "position": 7}

    statements.insert(
        Step, [columns | {"status": "passed"}], unique=("run", "path"), update=("status",)
    )

    step = Step.objects.get(run=run)
    assert (step.name, step.kind, step.status) == ("one", "fn", "passed")


def test_many_rows_take_more_than_one_statement(run: Run) -> None:
    rows = [made(Step, run) | {"path": [str(number)]} for number in range(1203)]

    keys = statements.insert(Step, rows, returning=True)

    assert len(set(keys)) == 1203
    assert Step.objects.filter(run=run).count() == 1204
    assert statements.insert(Step, []) == []


def test_a_second_row_of_its_kind_is_refused(run: Run) -> None:
    statements.insert(Event, [made(Event, run)])

    with pytest.raises(IntegrityError), transaction.atomic():
        statements.insert(Event, [made(Event, run)])
