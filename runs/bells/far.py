"""What carries rings from one process to the others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from runs.bells.hub import EVERYTHING, Hub

logger = logging.getLogger(__name__)

# How long to wait before what carries rings is tried again, in seconds: doubled up to the second.
SOONEST: Final = 0.1
LATEST: Final = 5.0


class FarBell(ABC):
    """Rings in other processes. The way may break: rings are lost then, and nothing else is."""

    @abstractmethod
    def send(self, rings: Collection[str]) -> None:
        """Ring elsewhere. From any thread; waits for nothing and never raises."""

    @abstractmethod
    def ear(self, hub: Hub) -> Ear:
        """What hears other processes in the running loop."""


class Ear(ABC):
    """One subscription per loop and topic, however many listen; it comes back by itself."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.followed: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._told = Told()
        self._task: asyncio.Task[None] | None = None

    def follow(self, topic: str) -> None:
        """Pass on the rings of a topic from now on."""
        self.followed[topic] += 1
        self._changed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._hear())

    def unfollow(self, topic: str) -> None:
        """One listener less."""
        self.followed[topic] -= 1
        if self.followed[topic] <= 0:
            del self.followed[topic]
        self._changed.set()

    @abstractmethod
    async def heard(self) -> None:
        """Hear until nothing is followed any more; raises when the way breaks."""

    def passed_on(self, rings: Iterable[str]) -> None:
        """Ring here what rang elsewhere."""
        self._told.worked()
        for ring in rings:
            if ring == EVERYTHING:
                self.hub.ring_all()
            else:
                self.hub.ring(ring)

    async def until_changed(self) -> None:
        """Wait until something else is followed."""
        await self._changed.wait()
        self._changed.clear()

    async def _hear(self) -> None:
        loop = asyncio.get_running_loop()
        pause = SOONEST
        while self.followed:
            began = loop.time()
            try:
                await self.heard()
            except Exception as error:  # noqa: BLE001  the clock goes on without the bell
                self._told.failed(error)
                pause = SOONEST if loop.time() - began > LATEST else min(pause * 2, LATEST)
                await asyncio.sleep(pause)


class Told:
    """Says once that rings are lost, and once that they are not any more."""

    def __init__(self) -> None:
        self._is_broken = False

    def failed(self, error: Exception) -> None:
        """Rings are lost."""
        if not self._is_broken:
            self._is_broken = True
            said = (str(error).strip().splitlines() or [""])[0]
            logger.warning("bell broken error=%s: %s", type(error).__name__, said)

    def worked(self) -> None:
        """Rings get through."""
        if self._is_broken:
            self._is_broken = False
            logger.warning("bell rings again")


async def ended(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
