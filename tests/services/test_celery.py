"""Real workers behind a real broker, on the database of the test."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.conf import LazySettings
from django.db import connection

from runs import dispatch, services, sweep, tasks
from runs.models import Attempt, Heartbeat, Run
from tests import flows
from tests.needs import need
from tests.services import flow

pytestmark = [
    pytest.mark.redis,
    pytest.mark.postgres,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(180),
]

ROOT = Path(__file__).resolve().parents[2]
Worker = Callable[..., AbstractContextManager["subprocess.Popen[bytes]"]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OBVERSA_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
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
    """`with start_worker(...)`: a Celery worker process that dies with its children."""

    @contextmanager
    def started(**environment: str) -> Iterator[subprocess.Popen[bytes]]:
        with (home / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "celery", "-A", "tests.services.celery_app"),
                    *("worker", "--concurrency", "2", "--loglevel", "WARNING"),
                    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
                ],
                cwd=ROOT,
                env=_environment(home, broker, prefix) | environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            kill(process)

    return started


def _environment(home: Path, broker: str, prefix: str) -> dict[str, str]:
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
        "OBVERSA_LEASE_SECONDS": "2",
    }


def kill(process: subprocess.Popen[bytes]) -> None:
    """The worker and all its children, without a word."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)


def until(is_so: Callable[[], Any], home: Path, *, seconds: float = 60) -> None:
    """Sweep until it is so."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError((home / "worker.log").read_text()[-4000:])
        sweep.sweep()
        time.sleep(0.05)


def status(run: Run) -> str:
    return flows.fresh(run).status


def start(workflow: str) -> Run:
    effect, retry_safe = flow.EFFECTS[workflow]
    flows.offer(flow.main_job(workflow, effect, retry_safe=retry_safe))
    return services.start_run(workflow, {}, actor="user:1")


def to_its_end(run: Run, home: Path) -> None:
    until(lambda: status(run) == "waiting", home)
    flows.answer(run, {"approved": True})
    until(lambda: flows.fresh(run).is_final, home)


@pytest.mark.parametrize("messages", ["once", "twice", "lost"])
def test_a_run_ends_whatever_the_broker_does_to_its_messages(
    start_worker: Worker, home: Path, monkeypatch: pytest.MonkeyPatch, messages: str
) -> None:
    send = dispatch.send
    if messages == "lost":
        monkeypatch.setattr(dispatch, "send", lambda attempts: None)
    run = start("asks")
    monkeypatch.setattr(dispatch, "send", send)

    with start_worker(OBVERSA_TEST_MESSAGES=messages):
        to_its_end(run, home)
        # It shows that it lives from a thread of its own, which may come after a short run.
        until(Heartbeat.objects.filter(role="worker").exists, home)

    assert status(run) == "passed"
    assert sorted(flow.effects()) == flow.expected("asks")
    kinds = flows.kinds(run)
    assert kinds.count("run:end") == 1
    assert kinds.count("step:lost") == kinds.count("step:refused") == 0
    assert set(Attempt.objects.values_list("status", flat=True)) == {"done"}


def test_a_worker_killed_in_the_middle_of_a_step_is_followed_by_another(
    start_worker: Worker, home: Path
) -> None:
    run = start("slow")
    with start_worker() as first:
        until((home / "begun").exists, home)
        kill(first)
    (home / "go-on").touch()

    with start_worker():
        to_its_end(run, home)

    assert status(run) == "passed"
    assert flows.kinds(run).count("step:lost") == 1
    assert sorted(flow.effects()) == flow.expected("slow")
    assert "callback-requested" in flows.kinds(run)


def test_a_worker_killed_in_a_step_that_may_not_repeat_leaves_one_question(
    start_worker: Worker, home: Path
) -> None:
    run = start("slow-once")
    with start_worker() as first:
        until((home / "begun").exists, home)
        kill(first)
    (home / "go-on").touch()

    with start_worker():
        until(lambda: status(run) == "waiting", home)
        assert flows.fresh(run).waiting_on == ["question"]
        assert flow.effects() == []
        flows.answer(run, {"action": "run-again"})
        to_its_end(run, home)

    assert status(run) == "passed"
    assert sorted(flow.effects()) == flow.expected("slow-once")


def test_a_worker_told_to_stop_finishes_its_step_first(start_worker: Worker, home: Path) -> None:
    run = start("slow")
    with start_worker() as worker:
        until((home / "begun").exists, home)
        os.kill(worker.pid, signal.SIGTERM)
        time.sleep(0.5)
        assert worker.poll() is None
        (home / "go-on").touch()
        assert worker.wait(30) == 0

    assert flows.statuses(run)["build"] == "passed"
    assert "step:lost" not in flows.kinds(run)
