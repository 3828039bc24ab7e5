from __future__ import annotations

from typing import Any

from django.db import migrations

# SQLite gets no trigger for DELETE: emptying a test database there is one DELETE per table.
POSTGRESQL = """
CREATE FUNCTION runs_event_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'runs_event is append only';
END $$;
CREATE TRIGGER runs_event_is_append_only BEFORE UPDATE OR DELETE ON runs_event
    FOR EACH STATEMENT EXECUTE FUNCTION runs_event_is_append_only();
"""
POSTGRESQL_BACK = """
DROP TRIGGER runs_event_is_append_only ON runs_event;
DROP FUNCTION runs_event_is_append_only();
"""
SQLITE = """
CREATE TRIGGER runs_event_is_append_only BEFORE UPDATE ON runs_event
BEGIN SELECT RAISE(ABORT, 'runs_event is append only'); END;
"""
SQLITE_BACK = "DROP TRIGGER runs_event_is_append_only;"


def forwards(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(POSTGRESQL if _is_postgresql(schema_editor) else SQLITE)


def backwards(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(POSTGRESQL_BACK if _is_postgresql(schema_editor) else SQLITE_BACK)


def _is_postgresql(schema_editor: Any) -> bool:
    return bool(schema_editor.connection.vendor == "postgresql")


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]

    operations = [migrations.RunPython(forwards, backwards)]
