"""Checks on the configuration, each with an id and what to do about it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import (
    CheckMessage,
    Error,
    Warning,  # noqa: A004  Django's own name
    register,
)
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from obversa_site import rates, telemetry


@register()
def one_secret_for_all(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Several processes on several machines must share the key that signs claims and sessions."""
    if os.environ.get("OBVERSA_SECRET_KEY") or not settings.CELERY_BROKER_URL:
        return []
    return [
        Warning(
            "A broker is configured, but every machine makes a secret key of its own.",
            hint="Set the same OBVERSA_SECRET_KEY for every web process, worker and beat.",
            id="obversa.W001",
        )
    ]


@register()
def one_database_for_all(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Processes that talk through a broker must see the same record."""
    if not settings.CELERY_BROKER_URL or connection.vendor == "postgresql":
        return []
    return [
        Warning(
            "A broker is configured, but the record is a SQLite file of this machine.",
            hint="Set DATABASE_URL to a PostgreSQL database.",
            id="obversa.W002",
        )
    ]


@register()
def news_for_all(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Without a bell a page learns of another process's work only when it looks again."""
    if not settings.CELERY_BROKER_URL or settings.OBVERSA_BELL != "process":
        return []
    return [
        Warning(
            "A broker is configured, but no bell: pages lag behind by up to two seconds.",
            hint="Set CHANNEL_REDIS_URL, or leave OBVERSA_BELL empty on PostgreSQL.",
            id="obversa.W003",
        )
    ]


@register()
def rates_can_be_read(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """A rate that nobody understands would limit nothing, or everything."""
    try:
        rates.calls()
        rates.costly()
    except ImproperlyConfigured as error:
        return [Error(f"A rate of the API cannot be read: {error}", id="obversa.E020")]
    return []


@register()
def traces_can_be_made(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """What the environment asks for needs an extra dependency."""
    if not telemetry.is_wanted() or telemetry.is_installed():
        return []
    return [
        Warning(
            "OTEL_* variables ask for traces, but OpenTelemetry is not installed: none are made.",
            hint="pip install 'obversa[otel]', or unset them.",
            id="obversa.W010",
        )
    ]
