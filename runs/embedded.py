"""The embedded worker: threads that take ready attempts from the table, and a sweeper."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Final

from django.conf import settings

from runs import backlog, dispatch, registry, sweep, tasks
from runs.attempts import worker
from runs.attempts.steady import let_go

logger = logging.getLogger(__name__)

THREADS: Final = 4
LOOK_SECONDS: Final = 1.0
SWEEP_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 10.0
# So many of the next steps are looked up at once, and taken one after the other for so long.
LISTED: Final = 64
LISTED_SECONDS: Final = 0.25
# Among very many it takes its time, and no more than a tenth of it all.
LISTED_SHARE: Final = 10


class EmbeddedWorker:
    """Runs the same tasks as a Celery worker, in this process, without a broker."""

    def __init__(self, threads: int = THREADS) -> None:
        self._free = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="step")
        self._lock = threading.Lock()
        self._taken: set[int] = set()
        self._later: dict[int, float] = {}
        self._listed: list[tuple[int, str | None]] = []
        self._listed_until = 0.0
        self._stop = threading.Event()
        self._loops = [
            threading.Thread(target=self._dispatch, name="dispatcher", daemon=True),
            threading.Thread(target=self._sweep, name="sweeper", daemon=True),
        ]

    def start(self) -> None:
        """Read the workflows, give back what a killed predecessor held, and begin."""
        registry.refresh()
        # The lock of `up` says that no other process of this role lives on this home.
        home = hashlib.sha256(str(settings.OBVERSA_HOME).encode()).hexdigest()[:8]
        lost = sweep.lose_all_of(worker.work_as(f"up-{home}"))
        if lost:
            logger.warning("interrupted attempts found at start count=%s", lost)
        worker.stay()
        worker.describe(slots=self._free)
        worker.beat()
        dispatch.alarm.set(timedelta())
        dispatch.knock.set()
        for loop in self._loops:
            loop.start()

    def stop(self) -> None:
        """Take nothing new and let the running steps finish."""
        self._stop.set()
        worker.leave()
        dispatch.knock.set()
        for loop in self._loops:
            if loop.ident is not None:
                loop.join()
        self._pool.shutdown(wait=True)
        worker.take_leave()
        worker.stay()

    def _dispatch(self) -> None:
        while not self._stop.is_set():
            dispatch.knock.wait(dispatch.alarm.seconds(LOOK_SECONDS))
            dispatch.knock.clear()
            try:
                if dispatch.alarm.rings():
                    sweep.wake_due()
                self._take()
            except Exception:
                logger.exception("dispatcher could not look for work")
            finally:
                let_go()

    def _take(self) -> None:
        now = time.monotonic()
        with self._lock:
            self._later = {pk: at for pk, at in self._later.items() if at > now}
            free, taken = self._free, [*self._taken, *self._later]
        if free <= 0 or self._stop.is_set():
            return
        for pk, trace in self._next(free, taken):
            with self._lock:
                self._taken.add(pk)
                self._free -= 1
            self._pool.submit(self._execute, pk, trace)

    def _next(self, free: int, taken: list[int]) -> list[tuple[int, str | None]]:
        """As many as are free of the next steps; the list of them is made anew now and then.

        To put all that wait in order costs more with each of them, and is not done for each step.
        """
        listed = [one for one in self._listed if one[0] not in taken]
        if len(listed) < free or time.monotonic() > self._listed_until:
            began = time.monotonic()
            listed = backlog.choose(LISTED, without=taken)
            now = time.monotonic()
            self._listed_until = now + max(LISTED_SECONDS, LISTED_SHARE * (now - began))
        some, self._listed = listed[:free], listed[free:]
        return some

    def _execute(self, pk: int, trace: str | None) -> None:
        # What a message would bring along (obversa_site/telemetry.py).
        headers = {"traceparent": trace} if trace else None
        try:
            tasks.execute.apply((pk,), throw=True, headers=headers)
        except Exception:
            logger.exception("attempt could not be executed attempt=%s", pk)
            with self._lock:
                self._later[pk] = time.monotonic() + RETRY_SECONDS
        finally:
            let_go()
            with self._lock:
                self._taken.discard(pk)
                self._free += 1
            dispatch.knock.set()

    def _sweep(self) -> None:
        while not self._stop.wait(SWEEP_SECONDS):
            try:
                worker.beat()
                tasks.sweep.apply(throw=True)
            except Exception:
                logger.exception("sweep failed")
            finally:
                let_go()
