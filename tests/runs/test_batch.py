from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import Model
from django.test.utils import CaptureQueriesContext

from gates.models import Request, Response
from runs.models import Artifact, Attempt, Event, Run, Step
from runs.shapes.steps import fn_job
from runs.turns import batch as batches
from runs.turns import statements
from runs.turns.batch import Batch
from tests import flows

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
ODD = 'quotes " and \\ and %s, a line\n, \x7f, \u2028, 😀 and {"json": null}'


class Gone(Exception):
    pass


@pytest.fixture
def run() -> Run:
    return flows.start(fn_job("one", str))


def attempt(run: Run, number: int = 7) -> dict[str, Any]:
    return {"run_id": run.pk, "path": ["a"], "number": number, "ready_at": NOW, "sent_at": NOW}


def step(run: Run, name: str, **more: Any) -> dict[str, Any]:
    return {"run_id": run.pk, "path": [name], "name": name, "kind": "fn", "position": 1, **more}


def test_rows_get_the_same_values_and_defaults_as_from_the_orm(run: Run) -> None:
    columns = step(run, "a", summary=ODD, started_at=NOW, outcome={"text": ODD, "nul": "\0"})
    event = {"run_id": run.pk, "seq": 99, "kind": "note", "at": NOW, "payload": {"n": 2**53}}
    batch = Batch()
    batch.insert(Step, [columns])
    batch.insert(Event, [event])
    batch.send()

    found = Step.objects.get(run=run, name="a")
    assert statements.columns_of(found) == statements.columns_of(Step(**columns, id=found.pk))
    noted = Event.objects.get(run=run, seq=99)
    assert statements.columns_of(noted) == statements.columns_of(Event(**event, id=noted.pk))


@pytest.mark.parametrize("model", [Run, Step, Event, Attempt, Artifact, Request, Response])
def test_a_row_is_written_column_by_column_and_nothing_else_of_it(model: type[Model]) -> None:
    full = {name: value for name, value in statements.columns_of(model()).items() if name != "id"}
    columns = statements.written(model, "postgresql")
    for row in (full, {}, dict(list(full.items())[::2]), {**full, "id": None, "beside": object()}):
        wanted = {
            name: prepare(row[name]) if name in row else default
            for name, prepare, default in columns
        }
        assert batches._form(batches.Insert(model)).written(row) == wanted


def test_a_row_that_is_there_gets_the_named_columns_alone(run: Run) -> None:
    Step.objects.create(**step(run, "a", desc="kept"))
    batch = Batch()
    rows = [step(run, "a", desc="other", status="passed"), step(run, "b", status="failed")]
    batch.insert(Step, rows, unique=("run", "path"), update=("status",))
    batch.send()

    found = Step.objects.filter(run=run, name__in="ab").order_by("name")
    assert [(row.name, row.desc, row.status) for row in found] == [
        ("a", "kept", "passed"),
        ("b", "", "failed"),
    ]


def test_keys_come_in_the_order_of_the_rows(run: Run) -> None:
    keys: list[int] = []
    batch = Batch()
    batch.insert(Attempt, [attempt(run, number) for number in range(10, 15)], keys=keys)
    assert keys == []
    batch.send()

    numbers = [Attempt.objects.get(pk=key).number for key in keys]
    assert numbers == [10, 11, 12, 13, 14]


def test_a_change_of_no_row_is_a_race_lost_and_takes_everything_back(run: Run) -> None:
    before = Step.objects.filter(run=run).count()
    batch = Batch()
    batch.insert(Step, [step(run, "a")])
    batch.update(Attempt, {"status": "done"}, lost=Gone(), run_id=run.pk, status="running")

    with pytest.raises(Gone), transaction.atomic():
        batch.send()

    assert Step.objects.filter(run=run).count() == before


def test_a_change_reaches_the_rows_with_all_of_the_values(run: Run) -> None:
    Attempt.objects.create(**attempt(run), fence="other")
    batch = Batch()
    changes = {"status": "lost", "ended_at": NOW, "worker": ODD, "lease_until": None}
    batch.update(Attempt, changes, lost=Gone(), run_id=run.pk, path=["a"], fence="other")
    batch.update(Attempt, {"status": "done"}, run_id=run.pk, fence="nobody's")
    batch.send()

    changed = Attempt.objects.get(run=run, number=7)
    assert (changed.status, changed.ended_at, changed.worker) == ("lost", NOW, ODD)
    assert Attempt.objects.get(run=run, number=1).status == "ready"


def test_a_second_row_of_its_kind_is_refused(run: Run) -> None:
    batch = Batch()
    batch.insert(Event, [{"run_id": run.pk, "seq": 1, "kind": "note", "at": NOW}])

    with pytest.raises(IntegrityError), transaction.atomic():
        batch.send()


@pytest.mark.postgres
def test_a_text_that_is_too_long_is_refused_and_not_cut(run: Run) -> None:
    batch = Batch()
    batch.update(Attempt, {"worker": "w" * 201}, run_id=run.pk, status="ready")

    with pytest.raises(DataError), transaction.atomic():
        batch.send()


@pytest.mark.postgres
def test_postgresql_takes_everything_as_one_statement(run: Run) -> None:
    texts = []
    for count in (1, 3):
        batch = Batch()
        batch.insert(Step, [step(run, f"{count}-{index}") for index in range(count)])
        batch.insert(
            Artifact,
            [
                {
                    "run_id": run.pk,
                    "digest": "d",
                    "name": "n",
                    "media_type": "m",
                    "size": 2**40,
                    "seq": count,
                    "created_at": NOW,
                }
            ],
        )
        batch.update(Attempt, {"ended_at": NOW if count == 1 else None}, run_id=run.pk)
        with CaptureQueriesContext(connection) as queries:
            batch.send()
        (query,) = queries.captured_queries
        texts.append(query["sql"].split("%s")[0].partition("::json")[0].partition("'")[0])

    assert texts[0] == texts[1]
    assert Artifact.objects.filter(run=run, size=2**40).count() == 2


def test_nothing_to_write_is_no_statement() -> None:
    with CaptureQueriesContext(connection) as queries:
        batch = Batch()
        batch.insert(Step, [])
        batch.send()

    assert not queries.captured_queries


@pytest.mark.parametrize("value", [1, "ü\n\u2028", None, True, datetime(2026, 1, 2, 3, tzinfo=UTC)])
def test_rows_are_written_as_json_whatever_they_hold(value: Any) -> None:
    text = batches._encode([{"it": value}])

    read = json.loads(text)[0]["it"]
    assert (datetime.fromisoformat(read) if isinstance(value, datetime) else read) == value


def test_a_number_with_no_room_in_the_quick_encoder_is_written_all_the_same() -> None:
    assert batches._encode([{"it": 2**70}]) == f'[{{"it":{2**70}}}]'
