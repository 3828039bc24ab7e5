"""The one door through which work goes to workers: a broker's message, or a knock on the thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from django.conf import settings

logger = logging.getLogger(__name__)

# The embedded dispatcher waits on this; it finds its work in the table.
knock = threading.Event()


def send(attempts: Iterable[int]) -> None:
    """Ask for these attempts to be executed. A lost message costs seconds: the sweep re-sends."""
    if not settings.CELERY_BROKER_URL:
        knock.set()
        return
    from runs import tasks

    for attempt in attempts:
        try:
            tasks.execute.apply_async((attempt,), retry=False)
        except Exception:
            logger.exception("attempt not sent attempt=%s", attempt)
            return
