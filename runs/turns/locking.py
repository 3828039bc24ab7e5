"""The lock of a run: its row, the database's time and what is new in its record, read at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from django.db import connection

from runs.fields import read_stored
from runs.kernel.events import Event
from runs.models import Event as EventRow
from runs.models import Run
from runs.turns import statements

AT_ONCE: Final = 200
Found = tuple[Run, datetime | str, list[Event]]
# No turn does anything but think between its statements. Whoever is silent for so long was stopped
# or cut off, and would keep the run, and a sweep that comes to it, waiting for as long as it is.
SILENT_MS = 30_000


def locked(run_id: UUID, after: int) -> Found | None:
    """The run, locked until the end, and events that follow the one numbered `after`.

    They may be only the first of them: the lock may be granted long after they were looked up.
    """
    if connection.vendor != "postgresql":
        # SQLite is in this process and needs no saving of ways.
        found = statements.lock(Run, pk=run_id)
        return None if found is None else (*found, [])
    return _read(run_id, after, lock=True)


def looked(run_id: UUID, after: int) -> Found | None:
    """The same without a lock, as all of it was in one moment; PostgreSQL alone."""
    return _read(run_id, after, lock=False)


def _read(run_id: UUID, after: int, *, lock: bool) -> Found | None:
    with connection.cursor() as cursor:
        cursor.execute(_select(lock=lock), [after, run_id])
        row = cursor.fetchone()
    return None if row is None else found(row[:-1])


def found(row: Sequence[Any]) -> Found:
    """What was read of `reading`."""
    *columns, now, news = row
    return statements.made(Run, columns), now, [_event(one) for one in news or ()]


@lru_cache
def _select(*, lock: bool) -> str:
    silent, locked = "''", ""
    if lock:
        silent = f"SET_CONFIG('idle_in_transaction_session_timeout', '{SILENT_MS}', TRUE)"
        locked = "FOR NO KEY UPDATE"
    return f"""
SELECT {reading()}, {silent}
FROM {statements.quoted(Run._meta.db_table)} AS here WHERE here.id = %s {locked}
"""  # noqa: S608  no values


def reading() -> str:
    """What is read of the run that a statement calls `here`; it takes one number: `after`."""
    columns = ", ".join(f"here.{statements.quoted(f.column)}" for f in Run._meta.concrete_fields)
    events = statements.quoted(EventRow._meta.db_table)
    return f"""{columns}, CLOCK_TIMESTAMP(), (
    SELECT JSON_AGG(JSON_BUILD_ARRAY(
        seq, kind, path, actor, surface, ROUND(EXTRACT(EPOCH FROM at) * 1000), key, payload
    ) ORDER BY seq)
    FROM (
        SELECT * FROM {events} WHERE run_id = here.id AND seq > %s ORDER BY seq LIMIT {AT_ONCE}
    ) AS news
)"""  # noqa: S608  no values


def _event(found: Sequence[Any]) -> Event:
    seq, kind, path, actor, surface, ts, key, payload = found
    return Event(
        kind=kind,
        path=tuple(read_stored(path)),
        fields=read_stored(payload),
        seq=seq,
        ts=int(ts),
        actor=actor,
        surface=surface,
        key=key,
    )
