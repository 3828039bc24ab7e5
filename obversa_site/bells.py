"""Which bell tells one process what another has done."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from obversa_site.databases import POSTGRESQL

BELLS = ("redis", "postgresql", "process")


def bell(wanted: str, *, redis: str, broker: str | None, engine: str) -> str:
    """The bell that is wanted, or the best that is there.

    With a broker there are several processes; PostgreSQL rings between them where no Redis does.
    """
    if wanted == "":
        if redis:
            return "redis"
        return "postgresql" if broker and engine == POSTGRESQL else "process"
    if wanted not in BELLS:
        raise ImproperlyConfigured(
            f"OBVERSA_BELL is {wanted!r}, and there are {', '.join(BELLS)}. Leave it empty to have "
            "one chosen."
        )
    if wanted == "redis" and not redis:
        raise ImproperlyConfigured("OBVERSA_BELL is redis. Set CHANNEL_REDIS_URL as well.")
    if wanted == "postgresql" and engine != POSTGRESQL:
        raise ImproperlyConfigured(
            "OBVERSA_BELL is postgresql, and the record is in SQLite. Set DATABASE_URL."
        )
    return wanted
