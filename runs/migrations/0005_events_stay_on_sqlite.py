from __future__ import annotations

from typing import Any

from django.db import migrations

# PostgreSQL has had its trigger since 0002. Emptying a test database takes this one away for that
# moment: see tests/conftest.py.
SQLITE = """
CREATE TRIGGER runs_event_is_kept BEFORE DELETE ON runs_event
BEGIN SELECT RAISE(ABORT, 'runs_event is append only'); END;
"""
SQLITE_BACK = "DROP TRIGGER runs_event_is_kept;"


def forwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(SQLITE)


def backwards(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(SQLITE_BACK)


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_checks_of_loops")]

    operations = [migrations.RunPython(forwards, backwards)]
