"""Threads that do what is due outside, apart from those that work: a slow receiver keeps no run.

`up` and each Celery worker have one set for each kind of errand. What is due stands in a table; a
message or a commit only wakes the threads, and the sweep does too.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Self

from runs.attempts.steady import let_go

logger = logging.getLogger(__name__)

THREADS: Final = 4
IDLE_SECONDS: Final = 5.0
# Commits that follow each other closely are looked at together.
PAUSE_SECONDS: Final = 0.05
STOP_SECONDS: Final = 15.0


class Errands:
    """Looks for what is due and does each errand, once at a time, on a thread of its own.

    `due` names what is due by number, `do` does one, and `wait` says how many seconds nothing more
    will be due, given the numbers under way. What is due and under way is found when it is done.
    """

    def __init__(
        self,
        name: str,
        *,
        due: Callable[[], Iterable[int]],
        do: Callable[[int], Any],
        wait: Callable[[list[int]], float],
    ) -> None:
        self._name = name
        self._due, self._do, self._wait = due, do, wait
        self._knock = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._busy: set[int] = set()
        self._pool: ThreadPoolExecutor | None = None
        self._loop: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether this process has the threads."""
        return self._loop is not None

    def begin(self) -> Self:
        """Start the threads, unless they run."""
        with self._lock:
            if self._loop is None:
                self._stop.clear()
                self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix=self._name)
                self._loop = threading.Thread(
                    target=self._run, args=(self._pool,), name=self._name, daemon=True
                )
                self._loop.start()
        return self

    def knock(self) -> None:
        """Look now."""
        self._knock.set()

    def end(self) -> None:
        """Begin nothing new, and let what is under way come to its end; again is nothing."""
        with self._lock:
            loop, pool = self._loop, self._pool
            self._loop = self._pool = None
        if loop is None or pool is None:
            return
        self._stop.set()
        self._knock.set()
        loop.join(STOP_SECONDS)
        pool.shutdown(wait=True, cancel_futures=True)
        # What was cancelled is as due as before.
        self._busy.clear()

    def _run(self, pool: ThreadPoolExecutor) -> None:
        wait = 0.0
        while not self._stop.is_set():
            self._knock.wait(wait)
            self._knock.clear()
            try:
                wait = self._look(pool)
            except Exception:
                logger.exception("could not look for what is due errands=%s", self._name)
                wait = IDLE_SECONDS
            finally:
                let_go()
            self._stop.wait(PAUSE_SECONDS)

    def _look(self, pool: ThreadPoolExecutor) -> float:
        """Hand out what is due; returns how long there is nothing more to do."""
        for number in self._due():
            with self._lock:
                if self._stop.is_set() or number in self._busy:
                    continue
                self._busy.add(number)
            pool.submit(self._make, number)
        with self._lock:
            busy = list(self._busy)
        return self._wait(busy)

    def _make(self, number: int) -> None:
        try:
            self._do(number)
        except Exception:
            logger.exception("an errand failed errands=%s number=%s", self._name, number)
            self._stop.wait(IDLE_SECONDS)
        finally:
            let_go()
            with self._lock:
                self._busy.discard(number)
            self._knock.set()
