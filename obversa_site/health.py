"""Whether this process is up, and whether it can do its work."""

from __future__ import annotations

import logging
import secrets
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, storages
from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from obversa_site import draining
from obversa_site.operations import broker
from obversa_site.operations.crew import SILENT_AFTER
from obversa_site.operations.remembered import Remembered
from runs.models import Heartbeat

logger = logging.getLogger(__name__)

# Nobody signs in to ask: asking a thousand times a second costs what asking once costs.
KNOWN_SECONDS: Final = 1.0
# A file is written to see whether one can be.
STORE_SECONDS: Final = 30.0


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Say that the process answers. Looks at nothing else."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Say what works and what does not; 503 when anything does not, or when the process leaves."""
    found = {**_checked.get(), "serving": "stopping" if draining.is_leaving() else None}
    ready = all(trouble is None for trouble in found.values())
    body = {name: trouble or "ok" for name, trouble in found.items()}
    return JsonResponse({"ready": ready, "checks": body}, status=200 if ready else 503)


def forget() -> None:
    """Look anew the next time."""
    for known in (_checked, _stored, _migrated):
        known.forget()
    broker.forget()


def _check() -> dict[str, str | None]:
    return {name: _told(name, check) for name, check in CHECKS.items()}


def _told(name: str, check: Callable[[], str | None]) -> str | None:
    """What is wrong, in words of ours: the text of an error may hold addresses and passwords."""
    try:
        return check()
    except DatabaseError:
        return "unreachable" if name == "database" else "unknown"
    except Exception:
        logger.exception("readiness not found out check=%s", name)
        return "unknown"


def _database() -> str | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return None


def _migrations() -> str | None:
    return _migrated.get() or None


def _missing() -> str:
    """How many of our migrations the database lacks; it may have those of a newer version."""
    missing = len(_ours() - set(MigrationRecorder(connection).applied_migrations()))
    return f"{missing} to apply: run manage.py migrate" if missing else ""


@lru_cache(maxsize=1)
def _ours() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).graph.leaf_nodes())


def _broker() -> str | None:
    looked = broker.look()
    return None if looked is None or looked.answers else "unreachable"


def _heard_from(role: str) -> Callable[[], str | None]:
    def check() -> str | None:
        heard = Heartbeat.objects.filter(role=role, at__gte=Now() - SILENT_AFTER).exists()
        return None if heard else f"none within {SILENT_AFTER.seconds} s"

    return check


def _artifacts() -> str | None:
    return _stored.get() or None


def _unwritable() -> str:
    """What keeps files of steps from being stored; empty when nothing does."""
    try:
        _write(storages["artifacts"])
    except Exception as error:  # noqa: BLE001  each kind of store has faults of its own
        logger.warning("the store of artifacts takes nothing error=%s", type(error).__name__)
        return "not writable"
    return ""


def _write(store: Storage) -> None:
    if isinstance(store, FileSystemStorage):
        folder = Path(store.location)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"ok")
            probe.flush()
        return
    name = f"probe/{secrets.token_hex(8)}"
    store.delete(store.save(name, ContentFile(b"ok")))


CHECKS: Final[Mapping[str, Callable[[], str | None]]] = {
    "database": _database,
    "migrations": _migrations,
    "broker": _broker,
    "workers": _heard_from("worker"),
    "sweep": _heard_from("sweep"),
    "artifacts": _artifacts,
}
_checked: Final = Remembered(_check, KNOWN_SECONDS)
_stored: Final = Remembered(_unwritable, STORE_SECONDS)
_migrated: Final = Remembered(_missing, STORE_SECONDS)
