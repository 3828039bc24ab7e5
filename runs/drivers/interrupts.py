"""SIGINT and SIGTERM while a session runs: noted, recorded, and passed on (runs.md R258)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Self

WATCHED: Final = (signal.SIGINT, signal.SIGTERM)


class SignalWatch:
    """Listens in the main thread only, where Python lets one; elsewhere it does nothing.

    The handler does no more than `note` the number, for it may interrupt anything. The session
    records it and calls `pass_on`, which lets the signal do what it would have done without us:
    by default SIGINT raises KeyboardInterrupt out of `run()` and SIGTERM ends the process. A
    handler of the host's own may turn it into a cancel; then the run ends aborted.
    """

    def __init__(self, note: Callable[[int], None]) -> None:
        self._note = note
        self._before: dict[int, Any] = {}
        self._unheard: list[int] = []

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in WATCHED:
                self._listen(number)
        return self

    def __exit__(self, *_raised: object) -> None:
        for number in list(self._before):
            self._leave(number)
        unheard, self._unheard = self._unheard, []
        for number in unheard:
            signal.raise_signal(number)

    def pass_on(self, number: int) -> None:
        """Let a noted signal take the effect it would have had."""
        if number in self._unheard:
            self._unheard.remove(number)
        if number not in self._before:
            return
        self._leave(number)
        signal.raise_signal(number)
        # The host's own handler took it: the run goes on and still listens.
        self._listen(number)

    def _listen(self, number: int) -> None:
        before = signal.getsignal(number)
        # What is ignored stays ignored, and a handler not made in Python cannot be put back.
        if before in (None, signal.SIG_IGN):
            return
        signal.signal(number, self._heard)
        self._before[number] = before

    def _leave(self, number: int) -> None:
        before = self._before.pop(number)
        if signal.getsignal(number) == self._heard:
            signal.signal(number, before)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        self._unheard.append(number)
        self._note(number)
