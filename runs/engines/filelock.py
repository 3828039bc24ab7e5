"""One at a time over all threads and processes of this machine; a dead holder holds nothing."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PAUSE: Final = 0.05


class NotWaited(Exception):
    """The wait for a lock was given up because the run was cancelled."""


def _never() -> bool:
    return False


@contextmanager
def locked(place: Path, cancelled: Callable[[], bool] = _never) -> Iterator[None]:
    """Hold the lock of this file; raises NotWaited when `cancelled` says so before it is held."""
    place.parent.mkdir(parents=True, exist_ok=True)
    # Each holder opens the file for itself: the system tells even threads apart by that.
    with place.open("a") as lock:
        while True:
            if cancelled():
                raise NotWaited("the run was cancelled.")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_PAUSE)
        yield
