"""Which steps are next of those that wait for a worker, and how many of them lie with the broker.

The table is the queue. A broker serves who came first, so it gets few messages at a time; the other
steps are held back there (no `sent_at`) and handed out as the first are done: by priority, and in
turns among those who started runs, among the workflows of each, and among the runs of each. So a
run of thousands of steps, or somebody with thousands of runs, keeps nobody else waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import Final

from django.conf import settings
from django.db import connection

from runs import dispatch
from runs.models import Attempt
from runs.turns.admission import STEP_OF_PRIORITY

# A process looks how many steps lie with the broker for every so many that it sends there.
SENT_UNSEEN: Final = 32
# Where there is no limit, so many held back before are handed out at once.
MANY: Final = 1_000


class Crowd:
    """What this process knows of the broker: whether more waits than lies there already.

    It believes so until it finds nothing held back: whoever holds a step back looks, and whoever
    has done one does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent = 0
        self.is_there = False

    def saw(self, held_back: bool) -> None:
        """Steps are held back now, or none is."""
        self.is_there = held_back

    def sent(self, count: int) -> bool:
        """Count what was sent; whether it was so much that one should look."""
        with self._lock:
            self._sent += count
            if self._sent < SENT_UNSEEN:
                return False
            self._sent = 0
            return True


crowd = Crowd()


def room(count: int) -> int:
    """How many of the steps that a turn makes due are handed out with it; the rest is held back."""
    if not settings.CELERY_BROKER_URL or not count:
        return count
    if crowd.is_there:
        return 0
    fits = min(count, most() or count)
    if fits < count:
        crowd.saw(held_back=True)
    return fits


def most() -> int:
    """How many steps lie with the broker at most, or a few more; 0 is no limit."""
    return int(settings.OBVERSA_HANDED_OUT)


def sent(count: int) -> None:
    """So many steps were handed out without a look at how many lie there: look now and then."""
    if settings.CELERY_BROKER_URL and most() and crowd.sent(count) and _lying() >= most():
        crowd.saw(held_back=True)


def go_on() -> int:
    """A step was done: hand out others, where some are held back."""
    return hand_out() if settings.CELERY_BROKER_URL and crowd.is_there else 0


def hand_out() -> int:
    """Hand out the next steps of those held back, when there is room for many; returns how many.

    Two processes at once hand out different ones: whoever's UPDATE changed a row sends it.
    """
    if not settings.CELERY_BROKER_URL:
        return 0
    free = (most() or MANY) - _lying()
    if free < most() // 2:
        crowd.saw(held_back=True)
        return 0
    found = [pk for pk, _ in choose(free, held_back=True)]
    won = _marked(found)
    crowd.saw(held_back=len(found) == free)
    if won:
        dispatch.send(won)
    return len(won)


def _lying() -> int:
    """How many steps lie with the broker, counted no further than it matters."""
    lying = Attempt.objects.filter(status=Attempt.Status.READY, sent_at__isnull=False)
    return lying.order_by()[: most() or MANY].count()


def _marked(found: Sequence[int]) -> list[int]:
    """Those of the steps that nobody else has handed out meanwhile."""
    if not found:
        return []
    marks = ", ".join(["%s"] * len(found))
    now, lock = "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')", ""
    if connection.vendor == "postgresql":
        # Whoever holds one of the rows ends or takes back that very step: nobody waits for it.
        now, lock = "CLOCK_TIMESTAMP()", " FOR UPDATE SKIP LOCKED"
    sql = f"""
UPDATE runs_attempt SET sent_at = {now} WHERE id IN (
    SELECT id FROM runs_attempt
    WHERE id IN ({marks}) AND status = 'ready' AND sent_at IS NULL{lock}
) RETURNING id
"""  # noqa: S608  no values
    with connection.cursor() as cursor:
        cursor.execute(sql, list(found))
        won = {pk for (pk,) in cursor.fetchall()}
    return [pk for pk in found if pk in won]


def choose(
    count: int, *, held_back: bool = False, without: Collection[int] = ()
) -> list[tuple[int, str | None]]:
    """The next steps that wait for a worker, or of those held back, and their traces.

    The first is the next. To put them in order reads all that wait.
    """
    with connection.cursor() as cursor:
        cursor.execute(_next(held_back=held_back), [count + len(without)] * 2)
        found = [(pk, trace) for pk, trace in cursor.fetchall() if pk not in without]
    return found[:count]


def _next(*, held_back: bool) -> str:
    step = int(STEP_OF_PRIORITY.total_seconds())
    waited = f"FLOOR(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP() - step.ready_at) / {step})"
    if connection.vendor == "sqlite":
        waited = f"CAST((JULIANDAY('NOW') - JULIANDAY(step.ready_at)) * 86400 / {step} AS INTEGER)"
    only = " AND sent_at IS NULL" if held_back else ""
    return f"""
WITH waiting AS (
    SELECT id, trace, run_id, ready_at,
        ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY id) AS in_run
    FROM runs_attempt WHERE status = 'ready'{only}
), by_run AS (
    SELECT step.id, step.trace, run.started_by, run.workflow, run.priority + {waited} AS level,
        step.in_run
    FROM waiting AS step JOIN runs_run AS run ON run.id = step.run_id
    WHERE step.in_run <= %s AND run.held_reason = '' AND run.admission <> 'queued'
), by_workflow AS (
    SELECT id, trace, started_by, level,
        ROW_NUMBER() OVER (
            PARTITION BY level, started_by, workflow ORDER BY in_run, id
        ) AS in_workflow
    FROM by_run
), by_starter AS (
    SELECT id, trace, level,
        ROW_NUMBER() OVER (PARTITION BY level, started_by ORDER BY in_workflow, id) AS in_starter
    FROM by_workflow
)
SELECT id, trace FROM by_starter ORDER BY level DESC, in_starter, id LIMIT %s
"""  # noqa: S608  no values
