"""The one door through which work goes to workers: a broker's message, or a knock on the thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from runs import traces

logger = logging.getLogger(__name__)

# A longer wait is left to the sweep, which looks every few seconds: a broker's late messages are
# no place to keep time (design I12).
LONGEST_COUNTDOWN: Final = timedelta(seconds=10)


class Alarm:
    """When the embedded dispatcher has to look for runs whose time has come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at: float | None = None

    def set(self, wait: timedelta) -> None:
        """Ring after this wait, or earlier when it was set to."""
        at = time.monotonic() + wait.total_seconds()
        with self._lock:
            self._at = at if self._at is None else min(at, self._at)

    def seconds(self, longest: float) -> float:
        """How long there is to wait for it, at most `longest`."""
        with self._lock:
            return longest if self._at is None else min(longest, self._at - time.monotonic())

    def rings(self) -> bool:
        """Whether it has rung since the last call."""
        with self._lock:
            due = self._at is not None and self._at <= time.monotonic()
            self._at = None if due else self._at
            return due


# The embedded dispatcher waits on these two; it finds its work in the tables.
knock = threading.Event()
alarm = Alarm()


# Which run an attempt belongs to, so that both are read at once. A header and no argument: a worker
# of another version neither misses it nor fails by it, and the attempt's row stays the truth.
RUN_HEADER: Final = "obversa_run"


def send(attempts: Iterable[int], run_id: UUID | None = None) -> None:
    """Ask for these attempts, of this run, to be executed.

    A lost message costs seconds: the sweep re-sends.
    """
    if not settings.CELERY_BROKER_URL:
        knock.set()
        return
    from runs import tasks

    headers = {} if run_id is None else {RUN_HEADER: str(run_id)}
    for attempt in attempts:
        try:
            with traces.span("obversa.dispatch", kind="producer", attempt=attempt):
                tasks.execute.apply_async((attempt,), headers=headers, retry=False)
        except Exception:
            logger.exception("attempt not sent attempt=%s", attempt)
            return


def tell(task: Any) -> None:
    """Ask a worker for another app's task, which finds its work in the tables too."""
    try:
        task.apply_async((), retry=False)
    except Exception:
        logger.exception("task not sent task=%s", task.name)


def wake(run_id: UUID, wait: timedelta) -> None:
    """Ask for a decision on the run after this wait. The row says when; the sweep finds it too."""
    if not settings.CELERY_BROKER_URL:
        alarm.set(wait)
        knock.set()
        return
    if wait > LONGEST_COUNTDOWN:
        return
    from runs import tasks

    try:
        seconds = max(0.0, wait.total_seconds())
        tasks.advance.apply_async((str(run_id),), countdown=seconds, retry=False)
    except Exception:
        logger.exception("wake-up not sent run=%s", run_id)
