"""A line now and then that says: this session still lives (runs.md R221)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)


@contextmanager
def beating(every_ms: int, beat: Callable[[], None]) -> Iterator[None]:
    """Call `beat` every so many milliseconds while the block runs; 0 for never."""
    if not every_ms:
        yield
        return
    over = threading.Event()

    def run() -> None:
        while not over.wait(every_ms / 1000):
            beat()

    thread = threading.Thread(target=run, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
