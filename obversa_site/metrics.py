"""What operators watch, in Prometheus' text: counts and ages, read from the database when asked.

Every process answers alike, because none of it is counted in a process: what a process alone can
know, such as its sockets, it tells with its heartbeat. What ever was is read from the sequences
that number the rows: one look each, that never falls when old rows leave.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Min, Model
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from gates.models import Delivery, Request, Response
from obversa_site.auth import AUTH, CsrfMissing, Unauthenticated
from obversa_site.operations import access, broker, crew, stuck
from obversa_site.operations.remembered import Remembered
from runs.attempts import heartbeat
from runs.models import Attempt, Event, Run, Step
from runs.people.principals import Principal

RECENT: Final = timedelta(hours=1)
# The newest that are looked at for a quantile: enough for one, and never a whole table.
SAMPLE: Final = 1_000
RUNS: Final = 100
QUANTILES: Final = (0.5, 0.9, 0.99)
# Counting what has ended reads an index over all of it; it is not counted again before fifty times
# as long as that took, so that it never takes more than a fiftieth of the database's time.
SHARE: Final = 50.0


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics, for callers who may see every run and every question; 401 and 403 otherwise."""
    try:
        who = _caller(request)
    except (Unauthenticated, CsrfMissing) as refusal:
        return _refused(401, refusal.code, str(refusal))
    if who is None:
        return _refused(401, "unauthenticated", "Send `Authorization: Bearer KEY`.")
    if not access.may_see(who):
        return _refused(403, "forbidden", "Metrics are for those who may see everything.")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Database())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _caller(request: HttpRequest) -> Principal | None:
    return next((who for way in AUTH if (who := way(request)) is not None), None)


def _refused(status: int, code: str, message: str) -> HttpResponse:
    return JsonResponse({"error": {"code": code, "message": message}}, status=status)


class Database(Collector):
    """The metrics as the database has them now, and what waits at the broker."""

    def collect(self) -> Iterable[Metric]:
        """Read them all; about twenty statements, whose number does not grow."""
        now = timezone.now()
        yield from _runs()
        yield from _requests(now)
        yield from _work(now)
        yield from _queues()
        yield from _deliveries(now)
        yield from _processes(now)
        yield from _ever()
        yield _quantiles(
            "obversa_answer_seconds",
            "From asking to the answer, of questions answered within the last hour.",
            # An answered question changes no more, and the history is in this order.
            Request.objects.filter(status=Request.Status.ANSWERED, changed_at__gte=Now() - RECENT)
            .order_by("-changed_at", "-id")
            .values_list("created_at", "answered_at")[:SAMPLE],
        )
        yield _quantiles(
            "obversa_step_seconds",
            f"From start to end, of the steps of the newest {RUNS} runs.",
            Step.objects.filter(
                run__in=Run.objects.order_by("-created_at").values("pk")[:RUNS],
                started_at__isnull=False,
                ended_at__isnull=False,
            ).values_list("started_at", "ended_at")[:SAMPLE],
        )


def _runs() -> Iterator[Metric]:
    under_way = Run.objects.filter(kind=Run.Kind.WORKFLOW, ended_at=None)
    counted = dict(under_way.values_list("status").annotate(Count("pk"))) | _over.get()
    yield _family(
        "obversa_runs",
        "Runs of workflows, by status.",
        "status",
        ((status, counted.get(status, 0)) for status in Run.Status.values),
    )
    held = stuck.counted(stuck.held_runs())
    yield GaugeMetricFamily("obversa_runs_held", "Runs that wait for somebody's word.", value=held)


def _count_over() -> dict[str, int]:
    """Runs that have ended, by status; external ones never do."""
    ended = Run.objects.filter(status__in=Run.FINAL).order_by()
    return dict(ended.values_list("status").annotate(Count("pk")))


_over: Final = Remembered(_count_over, 0.0, share=SHARE)


def _requests(now: datetime) -> Iterator[Metric]:
    found = _waiting.get()
    yield _family(
        "obversa_open_requests",
        "Questions that wait for an answer, by kind.",
        "kind",
        ((kind, found.get(kind, (0, None))[0]) for kind in Request.Kind.values),
    )
    yield _family(
        "obversa_oldest_request_age_seconds",
        "Since the oldest open question was asked; 0 when none is open.",
        "kind",
        ((kind, _age(now, found.get(kind, (0, None))[1])) for kind in Request.Kind.values),
    )
    overdue = stuck.overdue_requests().count()
    yield GaugeMetricFamily(
        "obversa_overdue_requests", "Open questions past their time.", value=overdue
    )


def _count_waiting() -> dict[str, tuple[int, datetime]]:
    """How many questions wait and since when, by kind."""
    waiting = Request.objects.filter(status__in=Request.OPEN).order_by()
    return {
        kind: (count, oldest)
        for kind, count, oldest in waiting.values_list("kind").annotate(
            Count("pk"), Min("created_at")
        )
    }


_waiting: Final = Remembered(_count_waiting, 0.0, share=SHARE)


def _work(now: datetime) -> Iterator[Metric]:
    found = crew.starts()
    yield _family(
        "obversa_attempts",
        "Steps that wait for a worker (ready) and that one works on (running).",
        "status",
        ((status, count) for status, (count, _) in found.items()),
    )
    ready = Attempt.Status.READY.value
    yield GaugeMetricFamily(
        "obversa_oldest_ready_age_seconds",
        "Since the step that waits longest for a worker became ready; 0 when none waits.",
        value=_age(now, found[ready][1]),
    )
    lapsed = stuck.lapsed_attempts().count()
    yield GaugeMetricFamily(
        "obversa_lapsed_attempts", "Steps whose worker fell silent.", value=lapsed
    )


def _queues() -> Iterator[Metric]:
    """What waits in each queue; nothing about a broker that does not say."""
    waiting = crew.queues()
    yield _family(
        "obversa_ready_attempts",
        "Steps that wait for a worker, by the queue that carries their messages.",
        "queue",
        ((queue.name, queue.ready_count) for queue in waiting),
    )
    yield _family(
        "obversa_queue_depth",
        "Messages that wait at the broker; absent while it does not say.",
        "queue",
        ((queue.name, queue.depth) for queue in waiting if queue.depth is not None),
    )
    looked = broker.look()
    if looked is not None:
        yield GaugeMetricFamily(
            "obversa_broker_up", "Whether the broker answers.", value=float(looked.answers)
        )


def _deliveries(now: datetime) -> Iterator[Metric]:
    states = (Delivery.State.PENDING, Delivery.State.SENDING)
    # As a list, so that the index of what is open serves it.
    under_way = Delivery.objects.filter(state__in=states).order_by()
    found = dict(under_way.values_list("state").annotate(Count("pk")))
    oldest = under_way.aggregate(at=Min("created_at"))["at"]
    found[Delivery.State.FAILED] = Delivery.objects.filter(state=Delivery.State.FAILED).count()
    yield _family(
        "obversa_deliveries",
        "Messages to people that wait, are being sent, or failed.",
        "status",
        ((state.value, found.get(state, 0)) for state in (*states, Delivery.State.FAILED)),
    )
    yield GaugeMetricFamily(
        "obversa_oldest_delivery_age_seconds",
        "Since the oldest message that is not out yet was written; 0 when all are.",
        value=_age(now, oldest),
    )


def _processes(now: datetime) -> Iterator[Metric]:
    beats = list(heartbeat.processes()[: crew.PROCESSES * 10])
    youngest: dict[str, datetime] = {}
    for beat in beats:
        youngest[beat.role] = max(beat.at, youngest.get(beat.role, beat.at))
    yield _family(
        "obversa_heartbeat_age_seconds",
        "Since the youngest sign of life of a role.",
        "role",
        ((role, _age(now, at)) for role, at in sorted(youngest.items())),
    )
    if "sweep" in youngest:
        yield GaugeMetricFamily(
            "obversa_sweep_age_seconds",
            "Since the last sweep was over.",
            value=_age(now, youngest["sweep"]),
        )
    alive = [beat for beat in beats if now - beat.at <= crew.SILENT_AFTER]
    yield _family(
        "obversa_processes",
        "Processes heard from within a minute, by role.",
        "role",
        sorted(Counter(beat.role for beat in alive).items()),
    )
    sockets = GaugeMetricFamily(
        "obversa_sockets", "Open sockets of each web process.", labels=["process", "kind"]
    )
    for beat in alive:
        for kind, number in ((beat.facts or {}).get("sockets") or {}).items():
            sockets.add_metric([beat.name, kind], number)
    yield sockets


# Rows are numbered by sequences, which go on where rows are pruned and restarts happen.
NUMBERED: Final[tuple[tuple[str, str, type[Model]], ...]] = (
    ("obversa_events", "Events written into records.", Event),
    ("obversa_attempts_made", "Starts of steps handed out.", Attempt),
    (
        "obversa_answers",
        "Answers of people and programs; several where several are needed.",
        Response,
    ),
    ("obversa_messages", "Messages to people written.", Delivery),
)


def _ever() -> Iterator[Metric]:
    """How many there ever were: counters, whose rates can be told."""
    last = _last_numbers()
    for name, words, model in NUMBERED:
        yield CounterMetricFamily(name, words, value=last.get(model._meta.db_table, 0))


def _last_numbers() -> dict[str, int]:
    """The number last given to a row of each table, in one statement."""
    tables = [model._meta.db_table for _, _, model in NUMBERED]
    if connection.vendor == "postgresql":
        each = " UNION ALL ".join(
            "SELECT %s, PG_SEQUENCE_LAST_VALUE(PG_GET_SERIAL_SEQUENCE(%s, 'id')::regclass)"
            for _ in tables
        )
        given = [table for table in tables for _ in range(2)]
    else:
        each = "SELECT name, seq FROM sqlite_sequence"
        given = []
    with connection.cursor() as cursor:
        cursor.execute(each, given)
        return {table: number or 0 for table, number in cursor.fetchall()}


def _family(name: str, words: str, label: str, found: Iterable[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(name, words, labels=[label])
    for value, count in found:
        family.add_metric([str(value)], count)
    return family


def _quantiles(name: str, words: str, spans: Iterable[tuple[Any, Any]]) -> Metric:
    """Quantiles of what happened lately; NaN when nothing did, as Prometheus says nothing."""
    lasted = sorted((end - start).total_seconds() for start, end in spans)
    family = GaugeMetricFamily(name, words, labels=["quantile"])
    for quantile in QUANTILES:
        place = math.ceil(quantile * len(lasted)) - 1
        family.add_metric([str(quantile)], lasted[place] if lasted else math.nan)
    return family


def _age(now: datetime, since: datetime | None) -> float:
    return max(0.0, (now - since).total_seconds()) if since is not None else 0.0
