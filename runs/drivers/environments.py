"""The environment of a run: brought up before its job, taken down after it (runs.md R198)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from runs.drivers.context import Workspace
from runs.drivers.signal import Signal
from runs.kernel.errors import LoopError, as_loop_error
from runs.kernel.events import EventKind
from runs.kernel.outcomes import failing
from runs.kernel.redact import redact

if TYPE_CHECKING:
    from runs.drivers.session import MemorySession

logger = logging.getLogger(__name__)

_POLL_SECONDS: Final = 1.0


class Upkeep:
    """One environment over one session; without one it does nothing.

    An environment has `up(workspace, cancel)`, which gives a handle with `url`, `env` and
    `down(cancel)`; both calls may be coroutines.
    """

    def __init__(self, environment: Any = None) -> None:
        self.environment = environment
        self.handle: Any = None

    def up(self, workspace: Workspace, cancel: Any) -> None:
        """Bring it up; raises whatever it raises."""
        self.handle = _done(self.environment.up(workspace, cancel))

    def down(self) -> LoopError | None:
        """Take down what is up, once; what went wrong is told and changes nothing."""
        handle, self.handle = self.handle, None
        if handle is None:
            return None
        try:
            # Its own cancel: a cancelled run is tidied up all the same.
            _done(handle.down(Signal()))
        except Exception as raised:  # noqa: BLE001 - whatever it is, the run's outcome stands
            logger.warning("environment not taken down error=%s", type(raised))
            return _told(raised)
        return None


def brought_up(session: MemorySession, pool: ThreadPoolExecutor) -> bool:
    """Whether the run has the environment it needs; one that has not ends here."""
    if session.upkeep.environment is None:
        return True
    workspace = Workspace(dir=session.workspace)
    up = pool.submit(session.upkeep.up, workspace, session.cancel)
    session.wakes.at_end_of(up)
    while not up.done():
        session.wakes.sleep(_POLL_SECONDS)
    raised = up.exception()
    if raised is None:
        session.more = {**session.more, "environment": session.upkeep.handle}
        return True
    if not isinstance(raised, Exception):
        raise raised
    error = _told(raised)
    outcome = failing(error)
    if session.cancel.is_set():
        outcome = outcome.evolve(status="aborted")
    session.append(EventKind.ERROR, (), {"message": error.message, "code": error.code})
    ended = {"outcome": outcome.to_json(), "usage": session.usage()}
    session.append(EventKind.RUN_END, (), ended)
    return False


def _told(raised: Exception) -> LoopError:
    error = as_loop_error(raised, fallback="CONFIG", phase="start")
    error.message = redact(error.message)
    return error


def _done(value: Any) -> Any:
    return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value


async def _awaited(value: Any) -> Any:
    return await value
