"""First come, first served for the one writer that SQLite has.

Under back-to-back writers an unlucky one can wait for seconds for SQLite's own lock. Queueing
inside the process bounds that wait; between processes SQLite's busy timeout still decides.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from django.db import connection


class FairLock:
    """A mutex that is handed over in the order of asking; re-entrant for its owner."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._owner: int | None = None
        self._depth = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        self._acquire()
        try:
            yield
        finally:
            self._release()

    def _acquire(self) -> None:
        me = threading.get_ident()
        with self._mutex:
            if self._owner == me:
                self._depth += 1
                return
            if self._owner is None and not self._waiting:
                self._owner, self._depth = me, 1
                return
            turn = threading.Event()
            self._waiting.append(turn)
        turn.wait()
        with self._mutex:
            self._owner, self._depth = me, 1

    def _release(self) -> None:
        with self._mutex:
            self._depth -= 1
            if self._depth:
                return
            self._owner = None
            if self._waiting:
                # Nobody may slip in between: the owner is a stand-in until the next one wakes.
                self._owner = -1
                self._waiting.popleft().set()


sqlite_writer = FairLock()


def writer() -> AbstractContextManager[None]:
    """The place of the one writer, where there is only one and it does not write already."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        return sqlite_writer.held()
    return nullcontext()
