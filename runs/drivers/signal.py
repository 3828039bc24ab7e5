"""A cancel that a step can look at and wait on."""

from __future__ import annotations

import threading


class Signal:
    """Set once to ask a run to stop; the reason is for people."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason = ""

    def set(self, reason: str = "cancelled") -> None:
        """Ask to stop; the first reason stays."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    def is_set(self) -> bool:
        """Whether somebody asked to stop."""
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep that a cancel ends early; True when cancelled."""
        return self._event.wait(seconds)
