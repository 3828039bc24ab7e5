"""Whether this process is up, and whether it can do its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError as BrokerUnreachable

from obversa_site.celery import app
from runs.models import Heartbeat

SILENT_AFTER = timedelta(seconds=60)
# Whoever asks every second must not make the broker open a connection every second.
ANSWERED_SECONDS = 5.0
_answered: dict[str, float] = {}


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Say that the process answers. Looks at nothing else."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Say what works and what does not; 503 when anything does not."""
    found = {name: check() for name, check in CHECKS.items()}
    ready = all(trouble is None for trouble in found.values())
    body = {name: trouble or "ok" for name, trouble in found.items()}
    return JsonResponse({"ready": ready, "checks": body}, status=200 if ready else 503)


def _database() -> str | None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "unreachable"
    return None


def _broker() -> str | None:
    if not settings.CELERY_BROKER_URL:
        return None
    address = str(app.conf.broker_write_url or settings.CELERY_BROKER_URL)
    if time.monotonic() < _answered.get(address, 0.0):
        return None
    try:
        with app.connection_for_write(connect_timeout=2) as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
    except (BrokerUnreachable, OSError):
        return "unreachable"
    _answered[address] = time.monotonic() + ANSWERED_SECONDS
    return None


def _heard_from(role: str) -> Callable[[], str | None]:
    def check() -> str | None:
        try:
            heard = Heartbeat.objects.filter(role=role, at__gte=Now() - SILENT_AFTER).exists()
        except DatabaseError:
            return "unknown"
        return None if heard else f"none within {SILENT_AFTER.seconds} s"

    return check


CHECKS: Mapping[str, Callable[[], str | None]] = {
    "database": _database,
    "broker": _broker,
    "workers": _heard_from("worker"),
    "sweep": _heard_from("sweep"),
}
