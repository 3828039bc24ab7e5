"""Messages of long ago, which nobody will look up any more."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models import Q

from gates.models import Delivery, Request
from runs import record

_AT_ONCE: Final = 5_000


def purge(days: int | None = None) -> int:
    """Delete deliveries that were over so many days ago; returns how many, some thousand at most.

    Those of an open question stay: they are what keeps a message from being sent twice.
    """
    days = settings.OBVERSA_KEEP_DELIVERIES_DAYS if days is None else days
    if days <= 0:
        return 0
    before = record.database_now() - timedelta(days=days)
    old = Delivery.objects.filter(state__in=Delivery.OVER, done_at__lt=before)
    old = old.filter(Q(request=None) | ~Q(request__status__in=Request.OPEN))
    found = list(old.order_by("pk").values_list("pk", flat=True)[:_AT_ONCE])
    Delivery.objects.filter(pk__in=found).delete()
    return len(found)
