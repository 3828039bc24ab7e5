"""A database of its own and real workers for a measurement, all taken away afterwards."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parents[2]
POSTGRES = os.environ.get("OBVERSA_TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432/test")
REDIS = os.environ.get("OBVERSA_TEST_REDIS_URL", "redis://127.0.0.1:6379/9")


@contextlib.contextmanager
def stage(*, broker: bool = True) -> Iterator[None]:
    """Set the environment for Django: PostgreSQL and, scaled out, Redis as the broker."""
    name = f"bench_{secrets.token_hex(4)}"
    with psycopg.connect(POSTGRES, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {
            "OBVERSA_HOME": home,
            "DATABASE_URL": f"{POSTGRES.rsplit('/', 1)[0]}/{name}",
            "OBVERSA_WORKFLOWS": "tests.benchmarks.flows",
            "OBVERSA_SECRET_KEY": secrets.token_urlsafe(48),
            "CELERY_BROKER_URL": REDIS if broker else "",
            "DJANGO_SETTINGS_MODULE": "obversa_site.settings",
        }
        try:
            yield
        finally:
            with psycopg.connect(POSTGRES, autocommit=True) as server:
                server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextlib.contextmanager
def celery_workers(count: int) -> Iterator[None]:
    """Worker processes of one slot each, heard from before anything is measured."""
    command = [sys.executable, "-m", "celery", "-A", "obversa_site", "worker"]
    options = ["-c", "1", "-l", "warning", "--without-gossip", "--without-mingle"]
    started = [
        subprocess.Popen([*command, *options, "-n", f"bench{index}@%h"], cwd=ROOT)
        for index in range(count)
    ]
    try:
        time.sleep(6)
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(timeout=30)
