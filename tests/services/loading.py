"""An embedded installation under load, or one that carries on what another one left.

`python -m tests.services.loading load`: starts runs, answers most questions, stores files, until
its standard input is closed. `carry-on`: answers what waits and works until every run is over.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any
from uuid import UUID

import django

WORKFLOW = "repeats"
PATIENCE_SECONDS = 120


def _answer(run_id: UUID) -> None:
    from tests.faults import people

    people.answer_all(run_id, lambda state, request: {"approved": True})


def load() -> None:
    """Every third run is left with its question open."""
    from django.db import close_old_connections

    from runs import services
    from runs.models import Run

    over = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    count = 0
    while not over.is_set():
        if Run.objects.filter(ended_at__isnull=True).exclude(status="waiting").count() < 8:
            services.start_run(WORKFLOW, {}, actor="user:1", labels={"number": str(count)})
            count += 1
        for run in Run.objects.filter(status="waiting").order_by("created_at")[:50]:
            if run.labels["number"][-1] not in "036":
                _answer(run.pk)
        close_old_connections()
        print(count, flush=True)  # noqa: T201  the test reads how far it is
        time.sleep(0.05)


def carry_on() -> None:
    from runs.models import Run

    end = time.monotonic() + PATIENCE_SECONDS
    while left := list(Run.objects.filter(ended_at__isnull=True)):
        if time.monotonic() > end:
            raise TimeoutError(str([(run.pk, run.status) for run in left]))
        for run in left:
            if run.status == "waiting":
                _answer(run.pk)
        time.sleep(0.1)
    statuses = Run.objects.values_list("status", flat=True)
    print(dict.fromkeys(statuses), len(statuses), flush=True)  # noqa: T201  the test reads it


def main(what: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "obversa_site.settings")
    django.setup()
    from runs.embedded import EmbeddedWorker

    worker: Any = EmbeddedWorker()
    worker.start()
    try:
        {"load": load, "carry-on": carry_on}[what]()
    finally:
        worker.stop()


if __name__ == "__main__":
    main(sys.argv[1])
