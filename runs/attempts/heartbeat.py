"""Who was heard from, and when."""

from __future__ import annotations

import logging
import os
import socket
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from django.db import DatabaseError
from django.db.models import QuerySet
from django.db.models.functions import Now

from runs.models import Heartbeat

logger = logging.getLogger(__name__)

FORGOTTEN_AFTER: Final = timedelta(days=1)
# What is done once an hour keeps its time in the same table, and is no process.
TIDY: Final = "tidy"
_STARTED: Final = datetime.now(UTC)


def beat(name: str, role: str, **facts: Any) -> None:
    """Show that this process lives; those that were silent for a day are forgotten.

    `facts` is what operators want to know of it beside its version: queues, slots, sockets.
    """
    told = {"version": our_version(), "startedAt": _STARTED.isoformat(), **facts}
    Heartbeat.objects.update_or_create(
        name=name[:200], defaults={"role": role, "at": Now(), "facts": told}
    )
    Heartbeat.objects.filter(at__lt=Now() - FORGOTTEN_AFTER).delete()


def processes() -> QuerySet[Heartbeat]:
    """The signs of life of processes."""
    return Heartbeat.objects.exclude(role=TIDY)


def leave(name: str) -> None:
    """Say no more that it lives: it ends in good order, and nobody has to look for it."""
    try:
        Heartbeat.objects.filter(name=name[:200]).delete()
    except DatabaseError:
        # Who is silent is found all the same.
        logger.warning("could not say that this process leaves name=%s", name)


def here() -> str:
    """Host and number of this process."""
    return f"{socket.gethostname()}/{os.getpid()}"


@lru_cache
def our_version() -> str:
    """The version that runs here."""
    try:
        return version("obversa")
    except PackageNotFoundError:
        return ""
