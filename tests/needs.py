"""What the tests need from the machine: found, or skipped with the reason.

With `OBVERSA_TEST_ALL=1` a missing service fails the test that needs it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

PATIENCE_SECONDS = 30.0
POSTGRES_URL = "postgres://postgres@127.0.0.1:5432/test"
REDIS_URL = "redis://127.0.0.1:6379/0"
RABBITMQ_URL = "amqp://guest:guest@127.0.0.1:5672//"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


class Found(NamedTuple):
    """Where a service is, or why it cannot be used."""

    address: str
    trouble: str = ""


def all_required() -> bool:
    """Whether a missing service is a failure."""
    return os.environ.get("OBVERSA_TEST_ALL", "") not in ("", "0")


def need(service: str) -> str:
    """Return the address of a service; skip, or fail, when there is none."""
    import pytest

    found = find(service)
    if found.trouble:
        reason = f"needs {service}: {found.trouble}"
        if all_required():
            pytest.fail(f"OBVERSA_TEST_ALL is set and this test {reason}", pytrace=False)
        pytest.skip(reason)
    return found.address


@cache
def find(service: str) -> Found:
    """Look for a service once per process; one that has to be there may be busy for a while."""
    until = time.monotonic() + PATIENCE_SECONDS
    found = SERVICES[service]()
    while found.trouble and all_required() and time.monotonic() < until:
        time.sleep(0.5)
        found = SERVICES[service]()
    return found


def _postgres() -> Found:
    import psycopg

    url = os.environ.get("OBVERSA_TEST_POSTGRES_URL", POSTGRES_URL)
    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.Error as error:
        return Found(url, _first_line(error))
    return Found(url)


def _redis() -> Found:
    import redis

    url = os.environ.get("OBVERSA_TEST_REDIS_URL", REDIS_URL)
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=3) as client:
            client.ping()
    except redis.RedisError as error:
        return Found(url, _first_line(error))
    return Found(url)


def _rabbitmq() -> Found:
    import amqp
    from amqp.exceptions import AMQPError

    url = os.environ.get("OBVERSA_TEST_RABBITMQ_URL", RABBITMQ_URL)
    parts = urlsplit(url)
    try:
        with amqp.Connection(
            host=f"{parts.hostname}:{parts.port or 5672}",
            userid=parts.username or "guest",
            password=parts.password or "guest",
            connect_timeout=3,
        ):
            pass
    except (OSError, AMQPError) as error:
        return Found(url, _first_line(error))
    return Found(url)


def _chromium() -> Found:
    named = os.environ.get("OBVERSA_TEST_CHROMIUM")
    for name in (named,) if named else CHROMIUM_NAMES:
        if path := shutil.which(name):
            return Found(path)
    return Found("", f"no {named or 'chromium'} on this machine")


def _nginx() -> Found:
    # A folder that not everybody looks into.
    path = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    return Found(path) if path else Found("", "no nginx on this machine")


def _server(name: str) -> Found:
    """A server's own program, for tests that start one of their own."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/lib/rabbitmq/bin")
    return Found(path) if path else Found("", f"no {name} on this machine")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


SERVICES: dict[str, Callable[[], Found]] = {
    "postgres": _postgres,
    "redis": _redis,
    "rabbitmq": _rabbitmq,
    "chromium": _chromium,
    "nginx": _nginx,
    "redis-server": lambda: _server("redis-server"),
    "rabbitmq-server": lambda: _server("rabbitmq-server"),
}
