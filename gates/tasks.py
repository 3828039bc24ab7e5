"""Doorways for messages about questions."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from celery.signals import worker_process_shutdown, worker_shutdown

from gates.notify import sender
from gates.routers import worker as routers


@shared_task(name="gates.notify")
def notify() -> None:
    """Send what is due, on threads of this worker's own: its slots are for steps."""
    sender.threads.begin().knock()


@shared_task(name="gates.route")
def route() -> None:
    """Post what is due at routers, on threads of this worker's own."""
    routers.threads.begin().knock()


@worker_process_shutdown.connect
@worker_shutdown.connect
def leaving(**_: Any) -> None:
    """Let what is being sent come to its end."""
    sender.threads.end()
    routers.threads.end()
