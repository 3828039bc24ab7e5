"""A database whose clock can be set: functions of a schema that is looked into before its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

# How long two readings of one statement may lie apart.
CLOSE_SECONDS = 0.9
_NAMES = ("clock_timestamp", "statement_timestamp")


@contextmanager
def to_be_set() -> Iterator[None]:
    """Sessions that begin inside the block have the clock that `set_ahead` sets."""
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA fake")
        cursor.execute("CREATE TABLE fake.ahead AS SELECT 0.0::float8 AS seconds")
        for one in _NAMES:
            cursor.execute(
                f"CREATE FUNCTION fake.{one}() RETURNS timestamptz LANGUAGE sql STABLE AS"
                f" $$ SELECT pg_catalog.{one}()"
                " + MAKE_INTERVAL(secs => (SELECT seconds FROM fake.ahead)) $$"
            )
        cursor.execute(f"ALTER DATABASE {name} SET search_path = fake, public, pg_catalog")
    _begin_anew()
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {name} RESET search_path")
            cursor.execute("SET search_path = public")
            cursor.execute("DROP SCHEMA fake CASCADE")
        _begin_anew()


def set_ahead(seconds: float) -> None:
    """Let the database's clock be so much ahead of the machine's from now on."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE fake.ahead SET seconds = %s", [seconds])
        cursor.execute(
            "SELECT EXTRACT(EPOCH FROM CLOCK_TIMESTAMP() - pg_catalog.CLOCK_TIMESTAMP())"
        )
        assert abs(float(cursor.fetchone()[0]) - seconds) < CLOSE_SECONDS


def _begin_anew() -> None:
    wrapper: Any = connection
    wrapper.close()
    wrapper.close_pool()
