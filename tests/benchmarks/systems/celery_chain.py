"""A bare Celery chain: A writes a row, the answer changes it and sends B, B changes it again."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any, ClassVar
from uuid import uuid4

import psycopg
import redis

from tests.benchmarks.stage import REDIS, SLOTS, celery_worker
from tests.benchmarks.systems.base import System


class BareCelery(System):
    name: ClassVar[str] = "bare Celery"
    given: ClassVar[str] = (
        f"workers of {SLOTS} slots (prefork) on the same Redis with the settings of Obversa's; A "
        "commits a row, the answer commits a change of it and sends B, B commits another"
    )

    def open(self, workers: int) -> None:
        if not self.url:
            self._prepare()
        from tests.benchmarks.systems.celery_tasks import app

        module = "tests.benchmarks.systems.celery_tasks"
        for _ in range(workers - len(self.processes)):
            name = f"bare{len(self.processes)}"
            self.processes.append(celery_worker(self.stage, app, module, name))

    def _prepare(self) -> None:
        self.url = self.stage.database("celery")
        os.environ |= {
            "OBVERSA_BENCH_BARE_BROKER": REDIS,
            "OBVERSA_BENCH_BARE_KEYS": self.stage.keys("bare"),
            "OBVERSA_BENCH_BARE_DATABASE": self.url,
        }
        from tests.benchmarks.systems import celery_tasks

        self._tasks: Any = celery_tasks
        self._local = threading.local()
        # Without its own timeout of five seconds: a long chain takes longer.
        self._redis = redis.Redis.from_url(REDIS, socket_timeout=None)
        with psycopg.connect(self.url) as connection:
            connection.execute(celery_tasks.TABLE)

    def begin(self) -> str:
        run = str(uuid4())
        self._tasks.step_a.apply_async((run,), retry=False)
        return run

    def waiting(self) -> Iterable[str]:
        return [
            str(run) for (run,) in self._look("SELECT run FROM approvals WHERE status = 'asked'")
        ]

    def answer(self, run: str) -> None:
        self._look(self._tasks.ANSWERED, ('{"approved": true}', run))
        self._tasks.step_b.apply_async((run,), retry=False)

    def done(self) -> int:
        ((found,),) = self._look("SELECT count(*) FROM approvals WHERE status = 'done'")
        return int(found)

    def began(self, run: str) -> float | None:
        found = self._look("SELECT b FROM approvals WHERE run = %s", (run,)).fetchone()
        return None if found is None else found[0]

    def close(self) -> None:
        self._redis.close()

    def chain(self, steps: int) -> str:
        """Send a chain of this many steps; the returned key is where its end is told."""
        from celery import chain

        key = f"{self.stage.name}_{uuid4()}"
        links = [self._tasks.link.si() for _ in range(steps - 1)]
        chain(*links, self._tasks.last.si(key)).apply_async()
        return key

    def ended(self, key: str) -> None:
        """Wait for the end of a chain."""
        if self._redis.blpop([key], timeout=240) is None:
            raise TimeoutError(key)

    def _look(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        if not hasattr(self._local, "connection"):
            self._local.connection = psycopg.connect(self.url, autocommit=True, prepare_threshold=0)
        return self._local.connection.execute(statement, values)
