"""What ends the sleep of a session's crank: a step that ended, a cancel, a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

from runs.drivers.interrupts import SignalWatch


class Wakes:
    """One queue for all of them: its `put` may be called from a signal handler, too."""

    def __init__(self, told_to_go: Callable[[int], None]) -> None:
        """`told_to_go` records a signal by its number before it takes effect."""
        self._queue: SimpleQueue[Future[None] | int | None] = SimpleQueue()
        self._watch = SignalWatch(self.note)
        self._told_to_go = told_to_go
        self.pass_on = self._watch.pass_on
        """What lets a recorded signal take effect; a session off the main thread is given one."""

    def note(self, number: int) -> None:
        """A signal came; safe in its handler."""
        self._queue.put(number)

    def at_end_of(self, future: Future[Any]) -> None:
        """Wake up when this ends, whatever came of it."""
        future.add_done_callback(lambda _future: self._queue.put(None))

    def when_done(self, future: Future[None]) -> None:
        """Wake up when this step ends."""
        future.add_done_callback(self._queue.put)

    @contextmanager
    def hearing(self, *, cancel: Any) -> Iterator[None]:
        """Hear signals, and a cancel that can say by itself when it is set."""
        listen = getattr(cancel, "listen", None)
        stop = None if listen is None else listen(lambda: self._queue.put(None))
        try:
            with self._watch:
                yield
        finally:
            if stop is not None:
                stop()

    def sleep(self, seconds: float) -> int:
        """Sleep at most so long; how many steps ended. Raises what a step's thread raised."""
        ended = 0
        try:
            woken = self._queue.get(timeout=seconds)
            while True:
                if isinstance(woken, Future):
                    woken.result()
                    ended += 1
                elif woken is not None:
                    self._told_to_go(woken)
                    self.pass_on(woken)
                woken = self._queue.get_nowait()
        except Empty:
            return ended
