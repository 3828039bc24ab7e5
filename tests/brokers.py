"""Connections to brokers, in tests that name one broker after another."""

from __future__ import annotations

from typing import Any

from runs import tasks


def forget() -> None:
    """Let the next message open a connection: Celery's pools outlive the setting that made them."""
    app: Any = tasks.execute.app
    app._after_fork()
