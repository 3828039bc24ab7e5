"""The two databases the product knows, each with the options it was measured with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

SQLITE = "django.db.backends.sqlite3"
POSTGRESQL = "obversa_site.postgresql"

# IMMEDIATE, or a transaction that reads first and then writes fails at once with "database is
# locked" under load, whatever the timeout. FULL keeps the last commit through a power cut.
SQLITE_OPTIONS: dict[str, Any] = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
        "PRAGMA busy_timeout=20000; PRAGMA foreign_keys=ON;"
    ),
}
POOL = {"min_size": 2, "max_size": 8}
# The same few statements come again and again: the server reads and plans each of them once.
PREPARED: dict[str, Any] = {"server_side_binding": True, "prepare_threshold": 3}


def database(url: str, home: Path) -> dict[str, Any]:
    """Return Django's description of the database at an address; none means a file in `home`."""
    if not url:
        return _sqlite({"ENGINE": SQLITE, "NAME": str(home / "obversa.sqlite3")})
    found = environ.Env.db_url_config(url)
    engine = found.get("ENGINE")
    if engine == SQLITE:
        return _sqlite(found)
    if engine == environ.Env.DB_SCHEMES["postgres"]:
        return _postgresql(found)
    raise ImproperlyConfigured(
        f"DATABASE_URL begins with {url.partition(':')[0]}:, and Obversa keeps its record in "
        "SQLite or PostgreSQL. Use sqlite:///PATH or postgres://USER:PASSWORD@HOST/NAME."
    )


def _sqlite(found: dict[str, Any]) -> dict[str, Any]:
    return found | {"CONN_MAX_AGE": 0, "OPTIONS": dict(SQLITE_OPTIONS)}


def _postgresql(found: dict[str, Any]) -> dict[str, Any]:
    # A connection kept per thread is never given back under ASGI; the pool is what reuses them.
    options = {**PREPARED, **found.get("OPTIONS", {}), "pool": dict(POOL)}
    # A server's cursor that an error leaves open is closed later, within whatever transaction runs
    # then, and that one fails. A record is read whole anyway.
    return found | {
        "ENGINE": POSTGRESQL,
        "CONN_MAX_AGE": 0,
        "OPTIONS": options,
        "DISABLE_SERVER_SIDE_CURSORS": True,
    }
