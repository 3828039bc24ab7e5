"""The threads that post questions to routers, apart from those that do the work of runs.

`up` and each Celery worker have one of these. What is due stands in the table; a commit wakes it,
and the sweep does too.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from django.conf import settings

from runs import dispatch
from runs.steady import let_go

logger = logging.getLogger(__name__)

THREADS: Final = 4
IDLE_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 0.05
# What is due and handed out already is no reason to look again at once; whoever is done knocks.
BUSY_SECONDS: Final = 0.5
STOP_SECONDS: Final = 15.0


class Caller:
    """Looks for questions that are due at a router, and posts them."""

    def __init__(self, threads: int = THREADS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="router")
        self._knock = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._busy: set[int] = set()
        self._loop = threading.Thread(target=self._run, name="routers", daemon=True)

    def start(self) -> None:
        self._loop.start()

    def knock(self) -> None:
        """Look now."""
        self._knock.set()

    def stop(self) -> None:
        """Begin nothing new, and let what is being posted come to its end."""
        self._stop.set()
        self._knock.set()
        if self._loop.ident is not None:
            self._loop.join(STOP_SECONDS)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self) -> None:
        wait = 0.0
        while not self._stop.is_set():
            self._knock.wait(wait)
            self._knock.clear()
            try:
                wait = self._look()
            except Exception:
                logger.exception("routers could not be looked after")
                wait = IDLE_SECONDS
            finally:
                let_go()
            self._stop.wait(PAUSE_SECONDS)

    def _look(self) -> float:
        """Hand out what is due; returns how long there is nothing more to do."""
        from gates.routers.calls import due, seconds_until_due

        for call in due():
            with self._lock:
                if self._stop.is_set() or call in self._busy:
                    continue
                self._busy.add(call)
            self._pool.submit(self._make, call)
        with self._lock:
            soonest = BUSY_SECONDS if self._busy else 0.0
        return max(soonest, seconds_until_due(IDLE_SECONDS))

    def _make(self, call: int) -> None:
        from gates.routers.calls import make

        try:
            make(call)
        except Exception:
            logger.exception("a router's call failed call=%s", call)
            self._stop.wait(IDLE_SECONDS)
        finally:
            let_go()
            with self._lock:
                self._busy.discard(call)
            self._knock.set()


_mine: Caller | None = None
_starting = threading.Lock()


def begin() -> Caller:
    """The caller of this process, started on first use."""
    global _mine  # noqa: PLW0603  one for each process
    with _starting:
        if _mine is None:
            _mine = Caller()
            _mine.start()
        return _mine


def end() -> None:
    """Stop the caller of this process, if it has one."""
    global _mine
    with _starting:
        ending, _mine = _mine, None
    if ending is not None:
        ending.stop()


def wake() -> None:
    """A question may be due: tell whoever posts. A lost word costs seconds, the sweep looks too."""
    if _mine is not None:
        _mine.knock()
    elif settings.CELERY_BROKER_URL:
        _send_word()


def sweep() -> int:
    """See that what is due is posted: by this process's caller, by a worker, or here and now."""
    from gates.routers.calls import due, make

    if _mine is not None:
        _mine.knock()
        return 0
    found = due()
    if settings.CELERY_BROKER_URL:
        if found:
            _send_word()
        return 0
    return sum(make(call) for call in found)


def _send_word() -> None:
    from gates.tasks import route

    dispatch.tell(route)
