"""A cancel that a step can look at and wait on."""

from __future__ import annotations

import threading
from collections.abc import Callable

Listener = Callable[[], None]


class Signal:
    """Set once to ask a run to stop; the reason is for people."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.RLock()
        self._listeners: list[Listener] = []
        self.reason = ""

    def set(self, reason: str = "cancelled") -> None:
        """Ask to stop; the first reason stays."""
        with self._lock:
            if self._event.is_set():
                return
            self.reason = reason
            self._event.set()
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def is_set(self) -> bool:
        """Whether somebody asked to stop."""
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep that a cancel ends early; True when cancelled."""
        return self._event.wait(seconds)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` once when it is set; what comes back ends the listening."""
        with self._lock:
            self._listeners.append(listener)
            is_set = self._event.is_set()
        if is_set:
            listener()

        def stop() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return stop
