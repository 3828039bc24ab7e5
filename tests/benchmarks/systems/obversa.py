"""This product, scaled out: Celery workers by Redis, news of every turn to open pages."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, ClassVar
from uuid import UUID

from tests.benchmarks import flows
from tests.benchmarks.rows import OURS
from tests.benchmarks.stage import SLOTS, celery_worker
from tests.benchmarks.systems.base import System


class Obversa(System):
    name: ClassVar[str] = OURS
    given: ClassVar[str] = (
        f"Celery workers of {SLOTS} slots (prefork) on Redis; runs are started and answered by the "
        "service functions that the API and the pages call; every turn rings the bell through Redis"
    )
    _asked: dict[str, Any]

    def open(self, workers: int) -> None:
        self.url = os.environ["DATABASE_URL"]
        self._asked = {}
        from obversa_site.celery import app

        for _ in range(workers - len(self.processes)):
            name = f"obversa{len(self.processes)}"
            self.processes.append(celery_worker(self.stage, app, "obversa_site", name))

    def begin(self) -> str:
        return str(start(flows.CYCLE).pk)

    def waiting(self) -> Iterable[str]:
        from gates.models import Request

        rows = Request.objects.filter(status="pending", run__workflow=flows.CYCLE)
        for row in rows.values_list("run_id", "pk", "digest", named=True):
            self._asked[str(row.run_id)] = row
            yield str(row.run_id)

    def answer(self, run: str) -> None:
        from gates import services

        row = self._asked.pop(run)
        services.submit(
            row.pk,
            principal=person(),
            token=None,
            digest=row.digest,
            response={"approved": True},
        )
        _let_go()

    def done(self) -> int:
        from runs.models import Run

        return Run.objects.filter(status="passed", workflow=flows.CYCLE).count()

    def began(self, run: str) -> float | None:
        from runs.models import Step

        step = Step.objects.filter(run=UUID(run), name="b", status="passed").first()
        return None if step is None else float(step.outcome["data"]["began"])

    def close(self) -> None:
        _let_go()


def start(workflow: str) -> Any:
    """Start a run as the command does."""
    from runs import services

    run = services.start_run(workflow, {}, actor="system", surface="command")
    _let_go()
    return run


def person() -> Any:
    """The one who answers."""
    from django.contrib.auth.models import User

    from runs.people.principals import Principal

    return Principal.for_user(User.objects.get(username="bench"))


def _let_go() -> None:
    """Give the thread's connection back, as the end of a request does."""
    from django.db import connection

    connection.close()
