"""Stay with a write while the database is away: what a step has done must not be lost with it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connection

logger = logging.getLogger(__name__)

T = TypeVar("T")
PATIENCE_SECONDS: Final = 120.0
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0


def steadily(do: Callable[[], T], *, patience: float = PATIENCE_SECONDS) -> T:
    """Call `do` until the database takes it.

    A connection that breaks at the commit leaves open whether the commit happened: `do` must find
    out itself what an earlier call of it did.
    """
    pause = FIRST_PAUSE
    until = time.monotonic() + patience
    while True:
        try:
            return do()
        except (OperationalError, InterfaceError) as error:
            if connection.in_atomic_block or time.monotonic() + pause > until:
                raise
            logger.warning("the database does not answer, trying again error=%s", error)
        let_go()
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


@contextmanager
def giving_back() -> Iterator[None]:
    """Give this thread's connection back when the block is over, however it ends."""
    try:
        yield
    finally:
        let_go()


def let_go() -> None:
    """Give this thread's connection back, and a broken one up; never raises."""
    if connection.in_atomic_block:
        return
    try:
        close_old_connections()
    except Exception:
        logger.exception("a connection could not be closed")
