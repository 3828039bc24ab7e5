from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import Q

# Events go only with a run that is in the archive, and only while this transaction says so.
POSTGRESQL = """
CREATE FUNCTION runs_event_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM runs_pruning WHERE run = OLD.run_id)
        AND EXISTS (SELECT 1 FROM runs_run WHERE id = OLD.run_id AND archived_at IS NOT NULL)
    THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'runs_event is append only';
END $$;
DROP TRIGGER runs_event_is_append_only ON runs_event;
CREATE TRIGGER runs_event_is_append_only BEFORE UPDATE ON runs_event
    FOR EACH STATEMENT EXECUTE FUNCTION runs_event_is_append_only();
CREATE TRIGGER runs_event_is_kept BEFORE DELETE ON runs_event
    FOR EACH ROW EXECUTE FUNCTION runs_event_is_kept();
"""
POSTGRESQL_BACK = """
DROP TRIGGER runs_event_is_kept ON runs_event;
DROP FUNCTION runs_event_is_kept();
DROP TRIGGER runs_event_is_append_only ON runs_event;
CREATE TRIGGER runs_event_is_append_only BEFORE UPDATE OR DELETE ON runs_event
    FOR EACH STATEMENT EXECUTE FUNCTION runs_event_is_append_only();
"""
# SQLite rebuilds a table to change it, and refuses while a trigger names it: this one may not name
# runs_run.
SQLITE = """
DROP TRIGGER runs_event_is_kept;
CREATE TRIGGER runs_event_is_kept BEFORE DELETE ON runs_event
WHEN NOT EXISTS (SELECT 1 FROM runs_pruning WHERE run = OLD.run_id)
BEGIN SELECT RAISE(ABORT, 'runs_event is append only'); END;
"""
SQLITE_BACK = """
DROP TRIGGER runs_event_is_kept;
CREATE TRIGGER runs_event_is_kept BEFORE DELETE ON runs_event
BEGIN SELECT RAISE(ABORT, 'runs_event is append only'); END;
"""


def forwards(apps: Any, schema_editor: Any) -> None:
    _execute(schema_editor, POSTGRESQL, SQLITE)


def backwards(apps: Any, schema_editor: Any) -> None:
    _execute(schema_editor, POSTGRESQL_BACK, SQLITE_BACK)


def _execute(schema_editor: Any, postgresql: str, sqlite: str) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(postgresql)
        return
    for statement in sqlite.strip().split(";\n", 1):
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("runs", "0011_runs_have_priorities_and_places")]

    operations = [
        migrations.CreateModel(
            name="Pruning",
            fields=[
                ("run", models.UUIDField(editable=False, primary_key=True, serialize=False)),
            ],
        ),
        migrations.AddField("run", "archived_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "run",
            "archive_digest",
            models.CharField(blank=True, db_default="", default="", max_length=71),
        ),
        migrations.AddField("run", "archive_size", models.PositiveBigIntegerField(null=True)),
        migrations.AddIndex(
            "run",
            models.Index(
                fields=["ended_at", "id"],
                condition=Q(archived_at__isnull=True, ended_at__isnull=False),
                name="run_to_archive",
            ),
        ),
        migrations.AddIndex(
            "run",
            models.Index(
                fields=["archive_digest"],
                condition=Q(archived_at__isnull=False),
                name="run_of_archive",
            ),
        ),
        migrations.AddIndex(
            "artifact", models.Index(fields=["digest", "size"], name="artifact_by_digest")
        ),
        migrations.AddConstraint(
            "run",
            models.CheckConstraint(
                condition=Q(archived_at__isnull=True, archive_digest="", archive_size__isnull=True)
                | Q(
                    archived_at__isnull=False,
                    archive_size__isnull=False,
                    ended_at__isnull=False,
                )
                & ~Q(archive_digest=""),
                name="run_archive_is_whole",
            ),
        ),
        migrations.RunPython(forwards, backwards),
    ]
