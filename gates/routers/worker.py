"""Posting questions that are due at routers, on threads that do nothing else (gates/errands.py)."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from gates.errands import IDLE_SECONDS, Errands
from runs import dispatch

# What is due and handed out already is no reason to look again at once; whoever is done knocks.
BUSY_SECONDS: Final = 0.5


def _due() -> list[int]:
    from gates.routers.calls import due

    return list(due())


def _make(call: int) -> None:
    from gates.routers.calls import make

    make(call)


def _wait(busy: list[int]) -> float:
    from gates.routers.calls import seconds_until_due

    return max(BUSY_SECONDS if busy else 0.0, seconds_until_due(IDLE_SECONDS))


threads: Final = Errands("routers", due=_due, do=_make, wait=_wait)


def wake() -> None:
    """A question may be due: tell whoever posts. A lost word costs seconds, the sweep looks too."""
    if threads.is_running:
        threads.knock()
    elif settings.CELERY_BROKER_URL:
        _send_word()


def sweep() -> int:
    """See that what is due is posted: by this process's caller, by a worker, or here and now."""
    from gates.routers.calls import due, make

    if threads.is_running:
        threads.knock()
        return 0
    found = due()
    if settings.CELERY_BROKER_URL:
        if found:
            _send_word()
        return 0
    return sum(make(call) for call in found)


def _send_word() -> None:
    from gates.tasks import route

    dispatch.tell(route)
