"""Sending what is due, on threads that do nothing else (gates/errands.py)."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Final

from django.conf import settings

from gates.errands import IDLE_SECONDS, Errands
from runs import dispatch

SWEEP_SECONDS: Final = 5.0
_KNOWN_SECONDS: Final = 5.0


def _due() -> list[int]:
    from gates.notify.deliver import due_channels
    from gates.notify.spread import BATCH, spread

    if spread() >= BATCH:
        threads.knock()
    return list(due_channels())


def _deliver(channel: int) -> None:
    from gates.notify.deliver import deliver

    deliver(channel)


def _wait(busy: list[int]) -> float:
    from gates.notify.deliver import seconds_until_due

    return seconds_until_due(IDLE_SECONDS, busy)


# Each channel is served by one thread at a time, so that what is told there stays in order.
threads: Final = Errands("notify", due=_due, do=_deliver, wait=_wait)


def wake() -> None:
    """Something may be due: tell whoever sends. A lost word costs seconds, the sweep looks too."""
    if threads.is_running:
        threads.knock()
    elif settings.CELERY_BROKER_URL and _anybody(int(time.monotonic() / _KNOWN_SECONDS)):
        _send_word()


def sweep() -> int:
    """See that what is due is sent: by the process's sender, by a worker, or else here and now."""
    from gates.models import Notice
    from gates.notify.deliver import deliver, due_channels
    from gates.notify.spread import spread

    if threads.is_running:
        threads.knock()
        return 0
    if settings.CELERY_BROKER_URL:
        if Notice.objects.exists() or due_channels():
            _send_word()
        return 0
    spread()
    # The process has nothing else that sends; its sweep is not to be kept for long either.
    until, handled = time.monotonic() + SWEEP_SECONDS, 0
    for channel in due_channels():
        left = until - time.monotonic()
        handled += deliver(channel, seconds=left) if left > 0 else 0
    return handled


def _send_word() -> None:
    from gates.tasks import notify

    dispatch.tell(notify)


@lru_cache(maxsize=1)
def _anybody(_: int) -> bool:
    """Whether anybody is told anything here; known for some seconds."""
    from gates.models import Channel

    return Channel.objects.filter(removed_at=None).exists()
