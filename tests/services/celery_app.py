"""The product's Celery app with a queue of its own, and a broker that may double or lose messages.

`celery -A tests.services.celery_app worker`, told by the environment what to do to messages.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from uuid import UUID

import django

# Models can be imported only after this.
django.setup()

from obversa_site.celery import app  # noqa: E402
from runs import dispatch  # noqa: E402

app.conf.broker_transport_options = {
    "visibility_timeout": 3600,
    "global_keyprefix": os.environ["OBVERSA_TEST_PREFIX"],
    "polling_interval": 0.05,
}

send = dispatch.send
lost: set[int] = set()


def send_twice(attempts: Iterable[int], run_id: UUID | None = None) -> None:
    for attempt in attempts:
        send([attempt], run_id)
        send([attempt], run_id)


def lose_first(attempts: Iterable[int], run_id: UUID | None = None) -> None:
    for attempt in attempts:
        if attempt in lost:
            send([attempt], run_id)
        lost.add(attempt)


match os.environ.get("OBVERSA_TEST_MESSAGES"):
    case "twice":
        dispatch.send = send_twice
    case "lost":
        dispatch.send = lose_first
