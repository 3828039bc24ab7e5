"""Who was heard from, and when."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db.models.functions import Now

from runs.models import Heartbeat

FORGOTTEN_AFTER: Final = timedelta(days=1)


def beat(name: str, role: str) -> None:
    """Show that this process lives; those that were silent for a day are forgotten."""
    Heartbeat.objects.update_or_create(name=name[:200], defaults={"role": role, "at": Now()})
    Heartbeat.objects.filter(at__lt=Now() - FORGOTTEN_AFTER).delete()
