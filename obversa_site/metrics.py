"""What operators watch, in Prometheus' text: counts and ages, read from the database when asked.

Every process answers alike, because none of it is counted in a process. What can be found in a
record of events is not repeated here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, Max, Min
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from gates import access as gates_access
from gates.models import Request
from obversa_site.auth import AUTH, CsrfMissing, Unauthenticated
from runs import access as runs_access
from runs.models import Attempt, Heartbeat, Run, Step
from runs.people.principals import Principal

RECENT: Final = timedelta(hours=1)
# The newest that are looked at for a quantile: enough for one, and never a whole table.
SAMPLE: Final = 1_000
RUNS: Final = 100
QUANTILES: Final = (0.5, 0.9, 0.99)


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
    if not (who.has_scope("read") and runs_access.sees_all(who) and gates_access.sees_all(who)):
        return _refused(403, "forbidden", "Metrics are for those who may see everything.")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Database())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _caller(request: HttpRequest) -> Principal | None:
    return next((who for way in AUTH if (who := way(request)) is not None), None)


def _refused(status: int, code: str, message: str) -> HttpResponse:
    return JsonResponse({"error": {"code": code, "message": message}}, status=status)


class Database(Collector):
    """The metrics as the database has them now."""

    def collect(self) -> Iterable[Metric]:
        """Read them all; about ten statements."""
        now = timezone.now()
        yield from _runs(now)
        yield from _requests(now)
        yield from _work(now)
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
        yield _family(
            "obversa_heartbeat_age_seconds",
            "Since the youngest sign of life of a role.",
            "role",
            (
                (found["role"], _age(now, found["at"]))
                for found in Heartbeat.objects.values("role").annotate(at=Max("at"))
            ),
        )


def _runs(now: datetime) -> Iterator[Metric]:
    workflows = Run.objects.filter(kind=Run.Kind.WORKFLOW)
    counted = dict(workflows.values_list("status").annotate(Count("pk")))
    yield _family(
        "obversa_runs",
        "Runs of workflows, by status.",
        "status",
        ((status, counted.get(status, 0)) for status in Run.Status.values),
    )
    held = workflows.exclude(held_reason="").filter(ended_at=None).count()
    yield GaugeMetricFamily("obversa_runs_held", "Runs that wait for somebody's word.", value=held)


def _requests(now: datetime) -> Iterator[Metric]:
    waiting = Request.objects.filter(status__in=Request.OPEN)
    found = {
        kind: (count, oldest)
        for kind, count, oldest in waiting.values_list("kind").annotate(
            Count("pk"), Min("created_at")
        )
    }
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
    overdue = waiting.filter(due_at__lt=Now()).count()
    yield GaugeMetricFamily(
        "obversa_overdue_requests", "Open questions past their time.", value=overdue
    )


def _work(now: datetime) -> Iterator[Metric]:
    at_work = Attempt.objects.filter(status__in=[Attempt.Status.READY, Attempt.Status.RUNNING])
    found = {
        status: (count, oldest)
        for status, count, oldest in at_work.values_list("status").annotate(
            Count("pk"), Min("ready_at")
        )
    }
    statuses = (Attempt.Status.READY, Attempt.Status.RUNNING)
    yield _family(
        "obversa_attempts",
        "Steps that wait for a worker (ready) and that one works on (running).",
        "status",
        ((status.value, found.get(status, (0, None))[0]) for status in statuses),
    )
    yield GaugeMetricFamily(
        "obversa_oldest_ready_age_seconds",
        "Since the step that waits longest for a worker became ready; 0 when none waits.",
        value=_age(now, found.get(Attempt.Status.READY, (0, None))[1]),
    )


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
