"""One tail per run and process: it reads the record once, however many pages watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Any, Final, Protocol
from uuid import UUID

from runs import fragments, live, queries
from runs.bells.hub import EVERYTHING
from runs.feeds import bounded, frames, sights, sockets
from runs.feeds.threads import in_thread
from runs.models import Run

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0
BATCH: Final = 500
# However quiet it is: a right that ends by itself, or by a hand in the database, rings no bell.
ASK_AGAIN_SECONDS: Final = 30.0
LOST: Final = 4404
# So many sockets are asked about at a time.
ASKED_AT_ONCE: Final = 50


class Watcher(Protocol):
    """A socket that shows the run."""

    scope: sights.Scope
    outlet: frames.Outlet

    async def refuse(self, code: int) -> None:
        """Close it."""


class Feed:
    """The live tail of one run.

    What the loop does between two waits nothing comes between: a watcher is either brought to where
    the tail stands and then is one of its watchers, or not yet.
    """

    def __init__(self, run_id: UUID, registry: Feeds) -> None:
        self._run_id = run_id
        self._registry = registry
        self._watchers: dict[Any, None] = {}
        self._joining = 0
        self._seq = 0
        self._shown = fragments.Shown()
        self._started = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    async def join(self, watcher: Watcher, after: int, asked: int) -> None:
        """Bring the watcher to where the tail is, then keep it there: nothing missed or doubled.

        `asked` is what `live.hub.told` was before its rights were asked for.
        """
        self._joining += 1
        try:
            async with self._started:
                if self._task is None:
                    self._seq = await in_thread(self._head)
                    self._task = asyncio.create_task(self._tail())
            while after < self._seq:
                text, reached = await in_thread(self._catch_up, after, self._seq)
                if text:
                    if not watcher.outlet.show(frames.Frame(text)):
                        raise TimeoutError
                    await watcher.outlet.drained()
                after = max(reached, after + 1)
            self._watchers[watcher] = None
        except TimeoutError:
            await watcher.refuse(sockets.SLOW)
        finally:
            self._joining -= 1
            self._end_if_alone()
        if asked != live.hub.told:
            # What it was let in by may be over since.
            await self._ask([watcher])

    def leave(self, watcher: Watcher) -> None:
        """Show it nothing more."""
        self._watchers.pop(watcher, None)
        self._end_if_alone()

    def _end_if_alone(self) -> None:
        if self._watchers or self._joining:
            return
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._registry.drop(self._run_id, self)

    async def _tail(self) -> None:
        asked = time.monotonic()
        words: set[str] = set()
        async with live.listening(live.run_topic(self._run_id), live.RIGHTS) as bell:
            # The head was read before anybody listened.
            bell.set()
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(bell.wait(), LOOK_SECONDS)
                words |= bell.taken()
                try:
                    # Before anything is shown: the news may be what somebody may not see any more.
                    if words:
                        self._shown.forget_names()
                        await self._ask(self._concerned(words))
                        words.clear()
                    await self._advance()
                    if time.monotonic() - asked >= ASK_AGAIN_SECONDS:
                        asked = time.monotonic()
                        self._shown.forget_names()
                        await self._ask(list(self._watchers))
                except Exception:
                    logger.exception("feed could not read run=%s", self._run_id)

    async def _advance(self) -> None:
        text, seq = await in_thread(self._read)
        self._seq = seq
        if text:
            frame = frames.Frame(text)
            for watcher in list(self._watchers):
                if not watcher.outlet.show(frame):
                    self._drop(watcher, sockets.SLOW)

    def _concerned(self, words: set[str]) -> list[Any]:
        if EVERYTHING in words:
            return list(self._watchers)
        return [one for one in self._watchers if str(one.scope["user"].pk) in words]

    async def _ask(self, watchers: list[Any]) -> None:
        """Show nothing more to whoever lost the right to look."""
        for first in range(0, len(watchers), ASKED_AT_ONCE):
            some = watchers[first : first + ASKED_AT_ONCE]
            scopes = [watcher.scope for watcher in some]
            stay = await in_thread(sights.still_see, self._run_id, scopes)
            for watcher, stays in zip(some, stay, strict=True):
                if not stays:
                    self._drop(watcher, LOST)

    def _drop(self, watcher: Any, code: int) -> None:
        """Show it nothing more from this moment on, and close it."""
        self._watchers.pop(watcher, None)
        task = asyncio.create_task(watcher.refuse(code))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    # --- in a thread -----------------------------------------------------------------------------

    def _head(self) -> int:
        return Run.objects.values_list("last_seq", flat=True).get(pk=self._run_id)

    def _read(self) -> tuple[str, int]:
        events = self._events(self._seq, BATCH)
        if not events:
            return "", self._seq
        run = Run.objects.get(pk=self._run_id)
        return self._shown.frame(run, events), events[-1].seq

    def _catch_up(self, after: int, until: int) -> tuple[str, int]:
        events = self._events(after, min(BATCH, until - after))
        if not events:
            return "", until
        run = Run.objects.get(pk=self._run_id)
        return fragments.frame(run, events, {}), events[-1].seq

    def _events(self, after: int, limit: int) -> list[Any]:
        """What one frame carries of the events after a number: most often a few, which are read."""
        few = queries.events_after(self._run_id, after, min(limit, bounded.FEW + 1))
        if len(few) <= bounded.FEW:
            return few
        fit = bounded.events_that_fit(self._run_id, after, few[-1].seq, limit)
        return queries.events_after(self._run_id, after, fit)


class Feeds:
    """The feeds of this process."""

    def __init__(self) -> None:
        self._feeds: dict[tuple[int, UUID], Feed] = {}

    def of(self, run_id: UUID) -> Feed:
        """The feed of a run in the running loop."""
        key = (id(asyncio.get_running_loop()), run_id)
        if key not in self._feeds:
            self._feeds[key] = Feed(run_id, self)
        return self._feeds[key]

    def drop(self, run_id: UUID, feed: Feed) -> None:
        for key, known in list(self._feeds.items()):
            if known is feed:
                del self._feeds[key]


feeds: Final = Feeds()
