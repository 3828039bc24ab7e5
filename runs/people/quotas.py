"""How much one caller may have open at a time, so that nobody fills everybody's lists."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from runs.errors import TooManyOpen
from runs.models import Run


def need_room_for_a_run(actor: str) -> None:
    """Raise TooManyOpen for somebody with as many runs or streams under way as one may have."""
    own = Run.objects.filter(started_by=actor, ended_at=None).order_by()
    need_room_beside(own[: most_runs()].count())


def need_room_beside(under_way: int) -> None:
    """The same for somebody of whom so many were counted, up to `most_runs`."""
    limit = most_runs()
    if limit and under_way >= limit:
        raise TooManyOpen(
            f"You have {limit} runs and streams under way, and no more are let in. "
            "Wait until some have ended, or cancel them."
        )


def most_runs() -> int:
    """How many runs and streams one may have under way; 0 is no limit."""
    limit: int = settings.OBVERSA_MAX_OPEN_RUNS
    return limit


def is_full(rows: QuerySet[Any], limit: int) -> bool:
    """Whether there are `limit` rows; 0 is no limit."""
    return bool(limit) and rows.order_by()[:limit].count() >= limit
