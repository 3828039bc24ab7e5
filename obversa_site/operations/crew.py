"""The processes that were heard from, what they do now, and what waits for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, Min

from obversa_site.operations import broker
from runs.attempts import heartbeat
from runs.models import Attempt, Heartbeat

SILENT_AFTER: Final = timedelta(seconds=60)
# Shown of the processes, and of the steps of each.
PROCESSES: Final = 200
STEPS_EACH: Final = 20
_AT_WORK: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """A step that a worker has in its hands."""

    attempt: Attempt
    is_lapsed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A worker, a web process or a sweeper, as it last showed itself."""

    name: str
    role: str
    heard_at: datetime
    is_silent: bool
    facts: dict[str, Any]
    doing: list[Doing]
    doing_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What waits in a queue. `depth` is None where the broker does not say."""

    name: str
    depth: int | None
    ready_count: int
    running_count: int
    oldest_at: datetime | None


def processes(now: datetime) -> list[Process]:
    """Those heard from within a day, workers first; each with what it does, longest first."""
    at_work = Attempt.objects.filter(status=Attempt.Status.RUNNING).select_related("run")
    mine: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in at_work.order_by("lease_until")[:_AT_WORK]:
        mine[main_of(attempt.worker)].append(attempt)
    rows = heartbeat.processes().order_by("-at")[:PROCESSES]
    found = [_process(row, mine.get(row.name, []), now) for row in rows]
    order = {"worker": 0, "sweep": 1, "web": 2}
    return sorted(found, key=lambda one: (order.get(one.role, 3), one.is_silent, one.name))


def main_of(worker: str) -> str:
    """The process that speaks for a worker: children of a pool are named below it."""
    return "/".join(worker.split("/")[:2])


def _process(row: Heartbeat, attempts: list[Attempt], now: datetime) -> Process:
    attempts = sorted(attempts, key=lambda one: one.claimed_at or now)
    return Process(
        name=row.name,
        role=row.role,
        heard_at=row.at,
        is_silent=now - row.at > SILENT_AFTER,
        facts=row.facts if isinstance(row.facts, dict) else {},
        doing=[
            Doing(attempt=one, is_lapsed=one.lease_until is not None and one.lease_until < now)
            for one in attempts[:STEPS_EACH]
        ],
        doing_count=len(attempts),
    )


def queues() -> list[Queue]:
    """Every queue; starts of steps wait in the table too, wherever their messages are."""
    waiting = starts()
    looked = broker.look()
    depths = {} if looked is None else looked.depths
    steps = queue_of_steps()
    return [
        Queue(
            name=name,
            depth=depths.get(name),
            ready_count=waiting[Attempt.Status.READY][0] if name == steps else 0,
            running_count=waiting[Attempt.Status.RUNNING][0] if name == steps else 0,
            oldest_at=waiting[Attempt.Status.READY][1] if name == steps else None,
        )
        for name in broker.QUEUES
    ]


def queue_of_steps() -> str:
    """The queue that carries starts of steps."""
    routes: dict[str, dict[str, str]] = settings.CELERY_TASK_ROUTES
    return routes["runs.execute"]["queue"]


def starts() -> dict[str, tuple[int, datetime | None]]:
    """How many starts are ready and running, and since when the oldest of them is."""
    statuses: Iterable[str] = (Attempt.Status.READY, Attempt.Status.RUNNING)
    found: dict[str, tuple[int, datetime | None]] = {}
    for status in statuses:
        # One after the other: each is served by an index of its own.
        rows = Attempt.objects.filter(status=status)
        told = rows.aggregate(number=Count("pk"), oldest=Min("ready_at"))
        found[status] = told["number"], told["oldest"]
    return found
