"""The Celery application of the bare chains: its tasks keep what counts by themselves."""

from __future__ import annotations

import os
import time
from typing import Any

import psycopg
import redis
from celery import Celery

TABLE = """
CREATE TABLE approvals (
    run uuid PRIMARY KEY, status text NOT NULL, a double precision, answer jsonb,
    b double precision, asked_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX approvals_asked ON approvals (run) WHERE status = 'asked';
"""
ASKED = "INSERT INTO approvals (run, status, a) VALUES (%s, 'asked', %s)"
ANSWERED = (
    "UPDATE approvals SET status = 'answered', answer = %s WHERE run = %s AND status = 'asked'"
)
DONE = "UPDATE approvals SET status = 'done', b = %s WHERE run = %s AND status = 'answered'"

# Not the current application: the process that measures has Obversa's as well.
app = Celery(
    "bare",
    broker=os.environ.get("OBVERSA_BENCH_BARE_BROKER", "memory://"),
    set_as_current=False,
)
app.conf.update(
    # As the workers of Obversa have it.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "visibility_timeout": 3600,
        "global_keyprefix": os.environ.get("OBVERSA_BENCH_BARE_KEYS", ""),
    },
)
_kept: dict[str, Any] = {}


def connection() -> psycopg.Connection[tuple[Any, ...]]:
    """The one connection of a worker process; each statement is a transaction."""
    if "connection" not in _kept:
        url = os.environ["OBVERSA_BENCH_BARE_DATABASE"]
        _kept["connection"] = psycopg.connect(url, autocommit=True, prepare_threshold=0)
    return _kept["connection"]  # type: ignore[no-any-return]  # the dictionary holds what is made


@app.task(name="bare.a")
def step_a(run: str) -> None:
    """Do step A and ask."""
    connection().execute(ASKED, (run, time.time()))


@app.task(name="bare.b")
def step_b(run: str) -> None:
    """Do step B."""
    connection().execute(DONE, (time.time(), run))


@app.task(name="bare.link")
def link() -> float:
    """One step of a chain that keeps nothing."""
    return time.time()


@app.task(name="bare.last")
def last(key: str) -> None:
    """Say that a chain has ended."""
    if "redis" not in _kept:
        _kept["redis"] = redis.Redis.from_url(os.environ["OBVERSA_BENCH_BARE_BROKER"])
    _kept["redis"].rpush(key, time.time())
