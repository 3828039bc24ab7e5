"""How the tables are emptied after a test that committed, and the database dropped at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.backends.postgresql import base as postgresql
from django.db.backends.sqlite3 import base as sqlite3
from django.db.utils import OperationalError
from psycopg.errors import DeadlockDetected

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

EVENTS: Final = "runs_event"
# So many pages of rows are dropped with their files; for fewer that takes longer than the test.
LARGE: Final = 2000
# A server that runs beside the tests takes its locks in another order.
TRIES: Final = 5
SIZES: Final = "SELECT SUM(pg_relation_size(oid)) / 8192 FROM pg_class WHERE relkind = 'r'"


def patch(patch: pytest.MonkeyPatch) -> None:
    """Let the flush of both databases pass the trigger that keeps events, and the drop succeed."""
    on_postgres: Any = postgresql.DatabaseWrapper.ops_class
    on_sqlite: Any = sqlite3.DatabaseWrapper.ops_class
    truncated, emptied = on_postgres.sql_flush, on_postgres.execute_sql_flush
    flushed = on_sqlite.execute_sql_flush

    def without_truncating(
        self: Any, style: Any, tables: list[str], *, reset_sequences: bool = False, **more: Any
    ) -> list[str]:
        if reset_sequences or not tables or _are_large(self, tables):
            more["reset_sequences"] = reset_sequences
            return list(truncated(self, style, tables, **more))
        return list(_deleting(self, tables))

    def again(self: Any, statements: list[str]) -> None:
        for left in reversed(range(TRIES)):
            try:
                emptied(self, statements)
            except OperationalError as error:
                if left == 0 or not isinstance(error.__cause__, DeadlockDetected):
                    raise
            else:
                return

    def past_the_trigger(self: Any, statements: list[str]) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' "
                f"AND tbl_name = '{EVENTS}' AND sql LIKE '%BEFORE DELETE%'"
            )
            found = cursor.fetchall()
        around = [f"DROP TRIGGER {name}" for name, _ in found], [sql for _, sql in found]
        flushed(self, [*around[0], *statements, *around[1]])

    patch.setattr(on_postgres, "sql_flush", without_truncating)
    patch.setattr(on_postgres, "execute_sql_flush", again)
    patch.setattr(on_sqlite, "execute_sql_flush", past_the_trigger)
    patch.setattr(postgresql.DatabaseWrapper.creation_class, "_destroy_test_db", _dropped)


def _are_large(operations: Any, tables: list[str]) -> bool:
    with operations.connection.cursor() as cursor:
        cursor.execute(f"{SIZES} AND relname = ANY(%s)", [tables])
        (pages,) = cursor.fetchone()
    return bool(pages > LARGE)


def _deleting(operations: Any, tables: list[str]) -> Iterator[str]:
    """Statements that empty the tables: a new file for each table and index takes a second.

    Like TRUNCATE they wait for whoever still writes or holds a row.
    """
    names = [operations.quote_name(name) for name in tables]
    yield f"LOCK TABLE {', '.join(names)} IN EXCLUSIVE MODE"
    if EVENTS in tables:
        yield f"ALTER TABLE {EVENTS} DISABLE TRIGGER USER"
    for name in names:
        yield f"DELETE FROM {name}"
    # The trigger cannot be changed while a key is still to be looked at.
    yield "SET CONSTRAINTS ALL IMMEDIATE"
    if EVENTS in tables:
        yield f"ALTER TABLE {EVENTS} ENABLE TRIGGER USER"


def _dropped(creation: Any, name: str, verbosity: int) -> None:
    """Drop the database also under a process or thread that has not quite ended."""
    creation.connection.close_pool()
    with creation._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE {creation.connection.ops.quote_name(name)} WITH (FORCE)")
