"""A Celery worker process behind a real broker, on the database of the test."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.conf import LazySettings
from django.db import connection
from django.db.models.functions import Now

from runs import sweep, tasks
from runs.models import Attempt
from tests.needs import need

ROOT = Path(__file__).resolve().parents[2]
Worker = Callable[..., AbstractContextManager["subprocess.Popen[bytes]"]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OBVERSA_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def prefix() -> Iterator[str]:
    """A corner of the broker that no other run of the tests looks into.

    One for all tests here: the connections that a process sends by remember theirs.
    """
    import redis

    made = f"obversa-test-{secrets.token_hex(6)}-"
    yield made
    with redis.Redis.from_url(need("redis")) as client:
        for key in client.scan_iter(f"{made}*"):
            client.delete(key)


@pytest.fixture
def broker(prefix: str, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test process as a web process: it sends, and does nothing itself."""
    app: Celery = tasks.execute.app
    url = need("redis")
    settings.CELERY_BROKER_URL = url
    changes: dict[str, Any] = app.conf.changes or {}
    for name, value in (
        ("broker_url", url),
        ("broker_transport_options", {"global_keyprefix": prefix}),
    ):
        monkeypatch.setitem(changes, name, value)
    monkeypatch.setattr(sweep, "RESEND_AFTER", timedelta(seconds=0.5))
    return url


@pytest.fixture
def start_worker(home: Path, broker: str, prefix: str) -> Worker:
    """`with start_worker(...)`: a Celery worker process that dies with its children.

    Words are options of its command line, names are its environment.
    """

    @contextmanager
    def started(*options: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        with (home / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "celery", "-A", "tests.services.celery_app"),
                    *("worker", "--concurrency", "2", "--loglevel", "WARNING"),
                    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
                    *options,
                ],
                cwd=ROOT,
                env=worker_environment(home, broker, prefix) | environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            kill(process)

    return started


def worker_environment(home: Path, broker: str, prefix: str) -> dict[str, str]:
    """What a process of the product is told: the test's database, broker and workflows."""
    database = connection.settings_dict
    login = f"{database['USER']}:{database['PASSWORD']}".rstrip(":")
    where = f"{database['HOST']}:{database['PORT'] or 5432}"
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
        "DATABASE_URL": f"postgres://{login}@{where}/{database['NAME']}",
        "CELERY_BROKER_URL": broker,
        "OBVERSA_TEST_PREFIX": prefix,
        "OBVERSA_HOME": str(home),
        "OBVERSA_WORKFLOWS": "tests.services.flow",
        # A busy machine loses no step between two beats.
        "OBVERSA_LEASE_SECONDS": "30",
    }


def kill(process: subprocess.Popen[bytes]) -> None:
    """The worker and all its children, without a word."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)


def lapse() -> None:
    """Let the leases of killed workers be over."""
    running = Attempt.objects.filter(status=Attempt.Status.RUNNING)
    running.update(lease_until=Now() - timedelta(seconds=1))
