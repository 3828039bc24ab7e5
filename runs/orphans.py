"""Steps of a worker's child that died without a word are given back at once, not by their leases.

Only the process that made the child may say so: it alone knows that this child is gone, where a
number of a process may be somebody else's in the next container or after the next start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

from runs import sweep
from runs.attempts import worker
from runs.attempts.steady import let_go

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0


class Children:
    """The children of this process's pool, looked at again and again; `alive` tells their pids."""

    def __init__(self, alive: Callable[[], Iterable[int]]) -> None:
        self._alive = alive
        self._known: set[int] = set()
        self._gone: set[int] = set()

    def look(self) -> int:
        """Count what children held that are gone as interrupted; returns how many steps.

        Where the database does not answer, the next look does it.
        """
        alive = set(self._alive())
        # One that has the number of another is named like it: then its leases decide.
        self._gone = (self._gone | self._known) - alive
        self._known = alive
        lost = 0
        for pid in sorted(self._gone):
            lost += sweep.lose_all_of(worker.child_name(pid))
            self._gone.discard(pid)
        return lost


def watch(pool: Any, over: threading.Event) -> None:
    """Look at the children of this Celery pool until it is over; at none where it has none."""
    if (children := _children_of(pool)) is not None:
        threading.Thread(target=_go_on, args=(children, over), name="orphans", daemon=True).start()


def _children_of(pool: Any) -> Children | None:
    def alive() -> Iterable[int]:
        found: Iterable[int] = pool.info["processes"]
        return found

    try:
        alive()
    except (AttributeError, KeyError, TypeError):
        # A pool of threads.
        return None
    return Children(alive)


def _go_on(children: Children, over: threading.Event) -> None:
    while not over.wait(LOOK_SECONDS):
        try:
            if lost := children.look():
                logger.warning("a child of this worker died, its steps are given back n=%s", lost)
        except Exception:
            logger.exception("the steps of a dead child could not be given back")
        finally:
            let_go()
