"""What is dear to find out, found out once for all who ask within some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")
# What takes less, in seconds, is not worth being told late.
DEAR: Final = 0.05


class Remembered(Generic[T]):
    """The result of `find`, kept for `seconds`, and `share` times as long as a dear one took.

    One thread at a time finds it; whoever asks meanwhile waits for that thread, so that many who
    ask at once cost as much as one. What `find` raises is not kept.
    """

    def __init__(self, find: Callable[[], T], seconds: float, share: float = 0.0) -> None:
        self._find = find
        self._seconds, self._share = seconds, share
        self._lock = threading.Lock()
        self._until = 0.0
        self._found: list[T] = []

    def get(self) -> T:
        """What is known, or what is found now."""
        with self._lock:
            if not self._found or time.monotonic() >= self._until:
                began = time.monotonic()
                found = self._find()
                now = time.monotonic()
                self._found = [found]
                took = now - began
                self._until = now + max(self._seconds, self._share * took if took > DEAR else 0)
            return self._found[0]

    def forget(self) -> None:
        """Find it anew the next time."""
        with self._lock:
            self._found = []
