"""Two versions run at once while one is rolled out: no migration may be in the older one's way."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState

from obversa_site.migrating import AddIndexBeside, faults

# The last migrations of the first release; until there is one, those before this rule.
BASELINE = {"runs": "0012", "gates": "0012"}


def test_no_migration_since_the_first_release_is_in_the_way_of_the_version_before() -> None:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    found = [
        fault
        for key, migration in sorted(loader.disk_migrations.items())
        if key[0] in BASELINE and key[1][:4] > BASELINE[key[0]]
        for fault in faults(migration, loader.project_state(list(migration.dependencies)))
    ]

    assert found == []


def told(*operations: Any, **facts: Any) -> str:
    state = ProjectState()
    fields: list[tuple[str, models.Field[Any, Any]]] = [
        ("id", models.BigAutoField(primary_key=True)),
        ("kind", models.CharField(max_length=60)),
        ("hash", models.CharField(max_length=64, null=True)),
    ]
    state.add_model(ModelState("runs", "Event", fields))
    state.add_model(ModelState("runs", "Small", list(fields)))
    made = migrations.Migration("0099_made", "runs")
    for name, fact in {"operations": list(operations), **facts}.items():
        setattr(made, name, fact)
    return " ".join(faults(made, state))


INDEX = models.Index(fields=["kind"], name="event_kind")
ONCE = models.UniqueConstraint(fields=["kind"], name="event_kind_once")
TEXT = models.CharField(max_length=60)


@pytest.mark.parametrize(
    "operation",
    [
        migrations.AddField("event", "note", models.TextField(null=True)),
        migrations.AddField("event", "count", models.IntegerField(db_default=0)),
        migrations.AlterField("event", "kind", models.CharField(max_length=90)),
        migrations.AlterField("event", "kind", models.CharField(max_length=60, null=True)),
        migrations.AddIndex("small", INDEX),
        migrations.CreateModel("New", [("id", models.BigAutoField(primary_key=True))]),
        migrations.RemoveConstraint("event", "event_kind_once"),
    ],
)
def test_what_the_version_before_does_not_notice_may_be_done(operation: Any) -> None:
    if isinstance(operation, migrations.RemoveConstraint):
        add = migrations.AddConstraint("event", ONCE)
        assert told(add, operation, beside="it was there before") == ""
    else:
        assert told(operation) == ""


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (migrations.RemoveField("event", "kind"), "still uses that name"),
        (migrations.RenameField("event", "kind", "sort"), "still uses that name"),
        (migrations.DeleteModel("Event"), "still uses that name"),
        (migrations.RenameModel("Event", "Fact"), "still uses that name"),
        (migrations.AddField("event", "count", models.IntegerField(default=0)), "db_default"),
        (migrations.AlterField("event", "hash", models.CharField(max_length=64)), "NULL"),
        (migrations.AlterField("event", "kind", models.CharField(max_length=10)), "longer"),
        (migrations.AlterField("event", "kind", models.TextField()), "another type"),
        (migrations.AlterField("event", "kind", TEXT.__class__(max_length=60, unique=True)), "twi"),
        (migrations.AddIndex("event", INDEX), "AddIndexBeside"),
        (migrations.AddConstraint("event", ONCE), "beside"),
        (migrations.RunPython(migrations.RunPython.noop), "beside"),
        (migrations.RunSQL("SELECT 1"), "beside"),
    ],
)
def test_what_it_would_not_survive_is_named(operation: Any, why: str) -> None:
    assert why in told(operation)


def test_what_cannot_be_read_off_is_answered_for_and_a_dropped_column_cannot_be() -> None:
    said = "the rows are few, and the version before never writes them"

    assert told(migrations.RunSQL("SELECT 1"), beside=said) == ""
    assert told(migrations.AddIndex("event", INDEX), beside=said) == ""
    assert told(migrations.RemoveField("event", "kind"), beside=said) != ""


def test_an_index_beside_writers_is_no_part_of_a_transaction() -> None:
    beside = AddIndexBeside("event", INDEX)

    assert "atomic = False" in told(beside)
    assert told(beside, atomic=False) == ""


@pytest.mark.django_db(transaction=True)
def test_an_index_is_made_beside_writers_on_both_databases() -> None:
    from runs.models import Heartbeat

    state = ProjectState.from_apps(Heartbeat._meta.apps)
    after = state.clone()
    operation = AddIndexBeside("heartbeat", models.Index(fields=["at"], name="heartbeat_at_try"))
    operation.state_forwards("runs", after)

    with connection.schema_editor(atomic=False) as editor:
        operation.database_forwards("runs", editor, state, after)
        with connection.cursor() as cursor:
            made = connection.introspection.get_constraints(cursor, Heartbeat._meta.db_table)
        operation.database_backwards("runs", editor, after, state)

    assert "heartbeat_at_try" in made
