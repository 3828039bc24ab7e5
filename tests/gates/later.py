"""Time that goes by in one run, without anybody waiting for it."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from runs.models import Run


def later(run_id: UUID, seconds: float) -> None:
    """Let the run's next turn be so much later: no turn is earlier than the one before it."""
    Run.objects.filter(pk=run_id).update(changed_at=timezone.now() + timedelta(seconds=seconds))
    Run.objects.filter(pk=run_id, wake_at__isnull=False).update(
        wake_at=F("wake_at") - timedelta(seconds=seconds)
    )
