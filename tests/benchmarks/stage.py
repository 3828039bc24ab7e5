"""Databases, keys in the broker and processes of their own, all taken away afterwards."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis

ROOT = Path(__file__).resolve().parents[2]
POSTGRES = os.environ.get("OBVERSA_TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432/test")
REDIS = os.environ.get("OBVERSA_TEST_REDIS_URL", "redis://127.0.0.1:6379/9")
PATIENCE = 60.0
# Of a Celery worker process.
SLOTS = 2
Process = subprocess.Popen[str]


class Stage:
    """What a run of the benchmarks has made so far."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        self.home = home
        self.databases: list[str] = []
        self.processes: list[Process] = []

    def database(self, label: str) -> str:
        """Make an empty database and return its address."""
        name = f"{self.name}_{label}"
        with server() as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        self.databases.append(name)
        return urlunsplit(urlsplit(POSTGRES)._replace(scheme="postgresql", path=f"/{name}"))

    def keys(self, label: str) -> str:
        """What the keys of one system begin with in the broker; they are deleted at the end."""
        return f"{self.name}_{label}_"

    def process(
        self, *words: str, talks: bool = False, env: Mapping[str, str] | None = None
    ) -> Process:
        """Start a Python module; one that talks takes and gives lines, another writes a log."""
        with (self.home / "processes.log").open("a") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=ROOT,
                env={**os.environ, **(env or {})},
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else log,
                stderr=log,
                text=True,
            )
        self.processes.append(started)
        return started

    def end(self, process: Process) -> None:
        """End one process in order."""
        self.processes.remove(process)
        process.terminate()
        try:
            process.wait(timeout=PATIENCE / 4)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self) -> str:
        """The last words of the processes."""
        written = self.home / "processes.log"
        return written.read_text(errors="replace")[-4000:] if written.exists() else ""


@contextlib.contextmanager
def stage() -> Iterator[Stage]:
    """Set the environment for Django: PostgreSQL, and Redis for work and for news."""
    with tempfile.TemporaryDirectory() as home:
        made = Stage(f"bench_{secrets.token_hex(4)}", Path(home))
        try:
            os.environ |= {
                "OBVERSA_HOME": home,
                "DATABASE_URL": made.database("obversa"),
                "OBVERSA_WORKFLOWS": "tests.benchmarks.flows",
                "OBVERSA_SECRET_KEY": secrets.token_urlsafe(48),
                "OBVERSA_BENCH_KEYS": made.keys("obversa"),
                "CELERY_BROKER_URL": REDIS,
                "CHANNEL_REDIS_URL": REDIS,
                "DJANGO_SETTINGS_MODULE": "tests.benchmarks.settings",
            }
            yield made
        finally:
            _strike(made)


def _strike(made: Stage) -> None:
    for process in list(made.processes):
        made.end(process)
    with contextlib.suppress(redis.RedisError), redis.Redis.from_url(REDIS) as broker:
        for key in broker.scan_iter(f"{made.name}_*"):
            broker.delete(key)
    with server() as connection:
        for name in made.databases:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def server() -> psycopg.Connection[tuple[Any, ...]]:
    """A connection for what is about the server, each statement by itself."""
    return psycopg.connect(POSTGRES, autocommit=True)


def wait_for(what: Callable[[], Any], *, seconds: float = PATIENCE, pause: float = 0.005) -> Any:
    """Ask until the answer is true and return it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(pause)
    raise TimeoutError(str(what))


def celery_worker(made: Stage, app: Any, module: str, name: str) -> Process:
    """One worker process, heard from before anything is measured."""
    node = f"{name}@{made.name}"
    options = [
        "-c",
        str(SLOTS),
        "-l",
        "warning",
        "--without-gossip",
        "--without-mingle",
        "-n",
        node,
    ]
    started = made.process("celery", "-A", module, "worker", *options)

    def answers() -> bool:
        if started.poll() is not None:
            raise RuntimeError(f"the worker {name} ended with {started.returncode}")
        return bool(app.control.ping(destination=[node], timeout=0.5))

    wait_for(answers)
    return started
