"""Leases of this process's running attempts, kept alive by one thread."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now

from runs.attempts.steady import let_go
from runs.drivers.signal import Signal
from runs.models import Attempt, Run

logger = logging.getLogger(__name__)

BEATS_PER_LEASE: Final = 6


def lease() -> timedelta:
    """How long a worker may be silent before its attempts count as interrupted."""
    return timedelta(seconds=settings.OBVERSA_LEASE_SECONDS)


@dataclass(frozen=True, slots=True)
class Held:
    """One attempt this process works on."""

    run_id: UUID
    fence: str
    signal: Signal


class Leases:
    """Renews what is held, and tells a step when its run is cancelled or its lease is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[int, Held] = {}
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, attempt_pk: int, held: Held) -> None:
        with self._lock:
            self._held[attempt_pk] = held
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._beat, name="leases", daemon=True)
                self._thread.start()

    def drop(self, attempt_pk: int) -> None:
        with self._lock:
            self._held.pop(attempt_pk, None)

    def cancel(self, run_id: UUID) -> None:
        """Reach the running steps of a cancelled run in this process at once."""
        with self._lock:
            for held in self._held.values():
                if held.run_id == run_id:
                    held.signal.set("cancelled")

    def _beat(self) -> None:
        while True:
            self._wake.wait(settings.OBVERSA_LEASE_SECONDS / BEATS_PER_LEASE)
            with self._lock:
                held = dict(self._held)
            if not held:
                continue
            try:
                self.renew(held)
            except Exception:
                # The lease simply runs on; the next beat tries again.
                logger.exception("leases not renewed attempts=%s", sorted(held))
            finally:
                let_go()

    def renew(self, held: dict[int, Held]) -> None:
        """One round: extend by the database's clock, then look for what was taken away."""
        running = Attempt.objects.filter(pk__in=list(held), status=Attempt.Status.RUNNING)
        running.update(lease_until=Now() + lease())
        fences = dict(running.values_list("pk", "fence"))
        runs = {one.run_id for one in held.values()}
        cancelled = set(
            Run.objects.filter(pk__in=runs, cancel_requested_at__isnull=False).values_list(
                "pk", flat=True
            )
        )
        for pk, one in held.items():
            if one.run_id in cancelled:
                one.signal.set("cancelled")
            elif fences.get(pk) != one.fence:
                one.signal.set("another worker has this step")


leases = Leases()
