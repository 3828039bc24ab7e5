"""The database's clock, which leases and deadlines go by (design I14)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import connection

# So long after the database's clock was read, this process's own goes on from it.
FRESH_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Clock:
    """The database's time, and what this process's own clock said when it was read."""

    read: datetime
    at: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> datetime:
        """About what the database's clock says now."""
        return self.read + timedelta(seconds=time.monotonic() - self.at)

    @property
    def is_fresh(self) -> bool:
        """Whether it was read a moment ago."""
        return time.monotonic() - self.at < FRESH_SECONDS


def database_now() -> datetime:
    """What the database's clock says."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT STRFTIME('%Y-%m-%d %H:%M:%f', 'NOW')")
        else:
            cursor.execute("SELECT CLOCK_TIMESTAMP()")
        return moment_of(cursor.fetchone()[0])


def moment_of(given: datetime | str) -> datetime:
    """What either database calls the time."""
    if isinstance(given, str):
        return datetime.fromisoformat(given).replace(tzinfo=UTC)
    return given.astimezone(UTC)
