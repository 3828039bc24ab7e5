"""From what is to be told to one delivery per channel; safe to do twice and at once."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from django.db import InterfaceError, OperationalError

from gates.models import Channel, Delivery, Notice, Preference, Request
from gates.notify import kinds, quiet
from gates.notify.recipients import channels_for
from runs import record
from runs.kernel.events import EventKind
from runs.models import Run

logger = logging.getLogger(__name__)

BATCH: Final = 200
_ASKED: Final = {
    Request.Kind.GATE: kinds.GATE_REQUESTED,
    Request.Kind.QUESTION: kinds.QUESTION_REQUESTED,
    Request.Kind.APPROVAL: kinds.APPROVAL_REQUESTED,
}
_WHILE_OPEN: Final = {
    EventKind.REMINDED: kinds.REMINDED,
    EventKind.OVERDUE: kinds.OVERDUE,
    EventKind.ESCALATED: kinds.ESCALATED,
    EventKind.ASSIGNED: kinds.ASSIGNED,
    EventKind.DELEGATED: kinds.ASSIGNED,
}
_CLOSED: Final = {
    EventKind.SUBMITTED: (Request.Status.ANSWERED, kinds.ANSWERED),
    EventKind.EXPIRED: (Request.Status.EXPIRED, kinds.EXPIRED),
    EventKind.WITHDRAWN: (Request.Status.CANCELLED, kinds.CLOSED),
    EventKind.SUPERSEDED: (Request.Status.SUPERSEDED, kinds.CLOSED),
}
_ENDED: Final = {
    Run.Status.PASSED: kinds.RUN_FINISHED,
    Run.Status.FAILED: kinds.RUN_FAILED,
    Run.Status.EXHAUSTED: kinds.RUN_FAILED,
    Run.Status.CANCELLED: kinds.RUN_CANCELLED,
}


def spread(limit: int = BATCH) -> int:
    """Make the deliveries of what was noted; returns how many notices that were."""
    notices = list(Notice.objects.select_related("run").order_by("pk")[:limit])
    if not notices:
        return 0
    if Channel.objects.filter(removed_at=None).exists():
        for notice in notices:
            try:
                _spread(notice)
            except (OperationalError, InterfaceError):
                raise
            except Exception:
                # The record has the fact; a message that cannot be made must not stop the others.
                logger.exception("notice not spread run=%s seq=%s", notice.run_id, notice.seq)
    # Last: whoever stops before this does it once more, and every delivery is there once.
    Notice.objects.filter(pk__in=[notice.pk for notice in notices]).delete()
    return len(notices)


def _spread(notice: Notice) -> None:
    run = notice.run
    if not notice.request_id:
        _of_run(notice, run)
        return
    row = (
        Request.objects.select_related("run").filter(run=run, request_id=notice.request_id).first()
    )
    if row is None:
        return
    if notice.kind in _CLOSED:
        status, kind = _CLOSED[EventKind(notice.kind)]
        if row.status == status:
            _close(notice, kind, row)
    elif row.is_open:
        kind = _WHILE_OPEN.get(EventKind(notice.kind)) or _ASKED[Request.Kind(row.kind)]
        _deliver(notice, kind, row)


def _of_run(notice: Notice, run: Run) -> None:
    if notice.kind == EventKind.RUN_CANCEL:
        kept = Request.objects.filter(run=run, status=Request.Status.CANCELLED)
        for row in kept.filter(deliveries__kind__in=kinds.ASKING).distinct().select_related("run"):
            _close(notice, kinds.CLOSED, row)
    elif notice.kind == EventKind.RUN_HELD:
        if run.status == Run.Status.PAUSED:
            _deliver(notice, kinds.RUN_PAUSED, None)
    elif run.status in _ENDED:
        _deliver(notice, _ENDED[Run.Status(run.status)], None)


def _close(notice: Notice, kind: str, row: Request) -> None:
    """What was not sent yet is not sent; who was told hears that it is over."""
    withdraw_pending(row, record.database_now())
    _deliver(notice, kind, row)


def withdraw_pending(row: Request, now: datetime) -> int:
    """Take back what was to say that the question waits."""
    waiting = Delivery.objects.filter(
        request=row, kind__in=kinds.ASKING, state=Delivery.State.PENDING
    )
    return waiting.update(
        state=Delivery.State.WITHDRAWN,
        done_at=now,
        error="The question was closed before this was sent.",
    )


def _deliver(notice: Notice, kind: str, row: Request | None) -> None:
    now = record.database_now()
    subject = notice.run_id if row is None else row.pk
    make(channels_for(kind, notice.run, row), kind, f"{kind}:{notice.seq}:{subject}", now,
         run=notice.run, request=row, seq=notice.seq)  # fmt: skip


def make(
    channels: Iterable[Channel],
    kind: str,
    key: str,
    now: datetime,
    *,
    run: Run | None = None,
    request: Request | None = None,
    seq: int | None = None,
) -> None:
    """One delivery on each channel; one that is there already stays as it is."""
    rows = []
    for channel in channels:
        at = quiet.first_time(channel, preference_of(channel), kind, now)
        rows.append(
            Delivery(
                channel=channel,
                run=run,
                request=request,
                seq=seq,
                kind=kind,
                key=key,
                held=at > now,
                next_at=at,
                created_at=now,
            )
        )
    Delivery.objects.bulk_create(rows, ignore_conflicts=True)


def preference_of(channel: Channel) -> Preference | None:
    """What the channel's person prefers; a team has no night."""
    return None if channel.user is None else getattr(channel.user, "preference", None)
