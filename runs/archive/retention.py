"""What the sweep clears away by itself: runs that ended long ago, and what is left in the store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.db.models import Q

from runs import record
from runs.archive import archiving
from runs.archive.archiving import MustStay
from runs.artifacts import tidying
from runs.attempts.heartbeat import TIDY
from runs.models import Heartbeat
from runs.turns.whole import RecordMoved

logger = logging.getLogger(__name__)

TIDY_EVERY: Final = timedelta(hours=1)
# One sweep does no more of it than this: what it repairs beside it must not wait.
SECONDS: Final = 2.0
_LOOKED_AT: Final = 50
_more: list[Callable[[], int]] = []
# Where the last sweep of this process stopped, so that runs which must stay hold nobody up.
_after: list[tuple[datetime, UUID]] = []


def also(clear: Callable[[], int]) -> None:
    """Let another app clear away its own once an hour."""
    if clear not in _more:
        _more.append(clear)


def archive_due() -> int:
    """Archive some of the runs that ended long enough ago, where a setting says after how long."""
    days = settings.OBVERSA_ARCHIVE_AFTER_DAYS
    if days <= 0:
        return 0
    until, archived = time.monotonic() + SECONDS, 0
    due = archiving.ended_before(record.database_now() - timedelta(days=days))
    if _after:
        at, key = _after.pop()
        due = due.filter(Q(ended_at__gt=at) | Q(ended_at=at, pk__gt=key))
    for run in list(due.only("pk", "ended_at")[:_LOOKED_AT]):
        run_id, ended_at = run.pk, run.ended_at
        assert ended_at is not None
        if time.monotonic() > until:
            break
        _after[:] = [(ended_at, run_id)]
        try:
            archiving.archive_run(run_id)
        except (OperationalError, InterfaceError):
            raise
        except (MustStay, RecordMoved) as why:
            logger.info("run not archived run=%s why=%s", run_id, why)
        except Exception:
            logger.exception("run not archived run=%s", run_id)
        else:
            archived += 1
    return archived


def tidy_up() -> int:
    """Once an hour, in one process: clean the store, and what other apps keep too long."""
    now = record.database_now()
    mine = Heartbeat.objects.filter(pk=TIDY, at__lt=now - TIDY_EVERY).update(at=now)
    if not mine:
        _, mine = Heartbeat.objects.get_or_create(pk=TIDY, defaults={"role": TIDY, "at": now})
    if not mine:
        return 0
    return tidying.tidy() + sum(clear() for clear in _more)
