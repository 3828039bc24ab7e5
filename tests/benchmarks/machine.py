"""What it was measured on, without names or places."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import redis

from tests.benchmarks.stage import REDIS, server

PACKAGES = ("django", "celery", "psycopg", "dbos", "langgraph", "langgraph-checkpoint-postgres")
DURABLE = ("fsync", "synchronous_commit", "full_page_writes")


class NotDurable(RuntimeError):
    """The server answers before a commit is on its disk; nothing is measured on it."""


def described() -> list[str]:
    """The date, the machine and the versions; raises NotDurable."""
    with server() as connection:
        found = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)",
            ([*DURABLE, "server_version"],),
        )
        settings: dict[str, str] = dict(found.fetchall())
    if off := [name for name in DURABLE if settings[name] != "on"]:
        raise NotDurable(f"PostgreSQL has {', '.join(off)} switched off; switch it on to measure.")
    with redis.Redis.from_url(REDIS) as broker:
        info = broker.info("server")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    busy = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    durable = ", ".join(f"{name} on" for name in DURABLE)
    postgres = settings["server_version"].split()[0]
    return [
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {memory:.0f} GiB of memory",
        f"load of the machine before it began (1, 5 and 15 minutes): {busy}",
        f"Python {platform.python_version()}, PostgreSQL {postgres} ({durable})",
        ", ".join([f"Redis {info['redis_version']}", *_versions()]),
    ]


def _versions() -> list[str]:
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return found
