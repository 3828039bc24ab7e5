"""Ctrl-C and SIGTERM: the first stops in good order, the second at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from runs.engines.process import end_all

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_state: dict[str, bool] = {"asked": False}
_acts: list[Callable[[], object]] = []


def listen() -> None:
    """Take the signals over, for as long as this process lives."""
    _state["asked"] = False
    _acts.clear()
    for number in _SIGNALS:
        signal.signal(number, _asked)


def then(act: Callable[[], object]) -> None:
    """What stops this process in good order from now on."""
    _acts.append(act)
    if _state["asked"]:
        act()


def _asked(number: int, frame: FrameType | None) -> None:
    if _state["asked"]:
        sys.stderr.write("Stopped at once. Steps that ran are looked at on the next start.\n")
        sys.stderr.flush()
        end_all()
        os._exit(128 + number)
    _state["asked"] = True
    sys.stderr.write("Stopping: running steps may finish. Once more stops at once.\n")
    sys.stderr.flush()
    for act in _acts:
        act()
