"""Doorways for messages: ids in, one call, nothing returned. Celery never retries a step."""

from __future__ import annotations

import logging
import threading
from typing import Any, Final
from uuid import UUID

from celery import shared_task
from celery.signals import worker_init, worker_ready, worker_shutdown, worker_shutting_down

from runs import backlog, dispatch, orphans, registry, schedules
from runs import sweep as sweeping
from runs.attempts import worker
from runs.attempts.steady import giving_back, let_go

logger = logging.getLogger(__name__)

BEAT_SECONDS: Final = 10.0
_over = threading.Event()


@shared_task(name="runs.execute", bind=True)
def execute(task: Any, attempt: int) -> None:
    """Do one start of one step."""
    with giving_back():
        worker.execute(attempt, run_id=_run_of(task.request))
        backlog.go_on()


def _run_of(request: Any) -> UUID | None:
    """Which run the message says that its attempt belongs to, if it says so."""
    told = getattr(request, dispatch.RUN_HEADER, None)
    try:
        return UUID(told)
    except (TypeError, ValueError, AttributeError):
        return None


@shared_task(name="runs.advance")
def advance(run: str) -> None:
    """Decide on a run again."""
    with giving_back():
        sweeping.advance(UUID(run))


@shared_task(name="runs.sweep")
def sweep() -> None:
    """Repair what was lost."""
    with giving_back():
        sweeping.sweep()


@shared_task(name="runs.start")
def start(workflow: str, params: dict[str, Any] | None = None, once_per: str = "") -> None:
    """Start a run for a schedule, once per "day", "hour" or "minute" (UTC) however often told."""
    with giving_back():
        schedules.start(workflow, params, once_per=once_per)


@worker_init.connect
def begun(**_: Any) -> None:
    """The main process of a Celery worker, before there is a pool."""
    worker.speak_for_children()
    # What is open now Celery closes by its number alone, in a child and in a pool that is this very
    # thread; there whoever has the number next would lose it when the connection itself is closed.
    let_go()


@worker_ready.connect
def ready(sender: Any = None, **_: Any) -> None:
    """A Celery worker keeps the catalogue and shows that it lives."""
    queues = sorted(getattr(sender.app.amqp.queues, "consume_from", ())) if sender else []
    slots = getattr(getattr(sender, "controller", None), "concurrency", None)
    worker.describe(queues=queues, slots=slots)
    threading.Thread(target=_live, name="heartbeat", daemon=True).start()
    orphans.watch(getattr(sender, "pool", None), _over)


@worker_shutting_down.connect
def leaving(**_: Any) -> None:
    """Say no more that it lives, and begin no step after those that run."""
    _over.set()
    worker.leave()


@worker_shutdown.connect
def left(**_: Any) -> None:
    """The worker is over in good order."""
    worker.take_leave()
    let_go()


def _live() -> None:
    listed = False
    while True:
        try:
            if not listed:
                registry.refresh()
                listed = True
            worker.beat()
        except Exception:
            logger.exception("the worker could not show that it lives")
        finally:
            let_go()
        if _over.wait(BEAT_SECONDS):
            return
