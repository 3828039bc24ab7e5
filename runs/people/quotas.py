"""How much one caller may have open at a time, so that nobody fills everybody's lists."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from runs.errors import TooManyOpen
from runs.models import Run


def need_room_for_a_run(actor: str) -> None:
    """Raise TooManyOpen for somebody with as many runs or streams under way as one may have."""
    limit: int = settings.OBVERSA_MAX_OPEN_RUNS
    if is_full(Run.objects.filter(started_by=actor, ended_at=None), limit):
        raise TooManyOpen(
            f"You have {limit} runs and streams under way, and no more are let in. "
            "Wait until some have ended, or cancel them."
        )


def is_full(rows: QuerySet[Any], limit: int) -> bool:
    """Whether there are `limit` rows; 0 is no limit."""
    return bool(limit) and rows.order_by()[:limit].count() >= limit
