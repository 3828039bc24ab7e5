"""Doorways for messages: ids in, one call, nothing returned. Celery never retries a step."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from runs import sweep as sweeping
from runs import worker


@shared_task(name="runs.execute")
def execute(attempt: int) -> None:
    worker.execute(attempt)


@shared_task(name="runs.advance")
def advance(run: str) -> None:
    sweeping.advance(UUID(run))


@shared_task(name="runs.sweep")
def sweep() -> None:
    sweeping.sweep()
