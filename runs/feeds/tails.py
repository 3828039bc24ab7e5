"""One tail per run and process: it reads the record once, however many pages watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol
from uuid import UUID

from runs import fragments, live, queries
from runs.feeds import bounded
from runs.feeds.threads import in_thread
from runs.models import Run

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 2.0
BATCH: Final = 500


# However quiet it is: a right that ends by itself, or by a hand in the database, rings no bell.
ASK_AGAIN_SECONDS: Final = 30.0


# "Internal error": a page comes back after it (static/js/live.js).
CUT_OFF: Final = 1011


class Watcher(Protocol):
    """A socket that shows the run."""

    async def send(self, text_data: str) -> None: ...

    async def close(self, code: int) -> None: ...

    async def ask_again(self) -> bool:
        """Whether whoever watches may still see the run; closes when not."""


class Feed:
    """The live tail of one run."""

    def __init__(self, run_id: UUID, registry: Feeds) -> None:
        self._run_id = run_id
        self._registry = registry
        self._watchers: dict[Any, None] = {}
        self._seq = 0
        self._known: dict[str, str] = {}
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def join(self, watcher: Watcher, after: int) -> None:
        """Bring the watcher to where the tail is, then keep it there: nothing missed or doubled."""
        async with self._lock:
            if self._task is None:
                self._seq = await in_thread(self._head)
                self._task = asyncio.create_task(self._tail())
            while after < self._seq:
                text, reached = await in_thread(self._catch_up, after, self._seq)
                if text:
                    await watcher.send(text_data=text)
                after = max(reached, after + 1)
            self._watchers[watcher] = None

    def leave(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)
        if not self._watchers and self._task is not None:
            self._task.cancel()
            self._task = None
            self._registry.drop(self._run_id, self)

    async def _tail(self) -> None:
        asked = time.monotonic()
        async with (
            live.listening(live.run_topic(self._run_id)) as bell,
            live.listening(live.RIGHTS) as rights,
        ):
            # A right may have ended after it was asked for and before anybody listened.
            rights.set()
            bell.set()
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(bell.wait(), LOOK_SECONDS)
                bell.clear()
                try:
                    # Before anything is shown: the news may be what somebody lost the right to.
                    if rights.is_set() or time.monotonic() - asked >= ASK_AGAIN_SECONDS:
                        rights.clear()
                        asked = time.monotonic()
                        await self._ask_all()
                    await self._advance()
                except Exception:
                    logger.exception("feed could not read run=%s", self._run_id)

    async def _advance(self) -> None:
        async with self._lock:
            text, seq = await in_thread(self._read)
            self._seq = seq
            if text:
                await self._to_all(lambda watcher: watcher.send(text_data=text))

    async def _ask_all(self) -> None:
        """Show nothing more to whoever lost the right to look."""
        async with self._lock:
            await self._to_all(lambda watcher: watcher.ask_again())

    async def _to_all(self, act: Callable[[Any], Coroutine[Any, Any, Any]]) -> None:
        """Do it for every watcher; one who may not stay is left out.

        One for whom it failed, because the database was away for instance, is cut off: its page
        comes back and catches up. Left out and open it would wait for news for ever.
        """
        watchers = list(self._watchers)
        results = await asyncio.gather(*map(act, watchers), return_exceptions=True)
        for watcher, result in zip(watchers, results, strict=True):
            if result is False or isinstance(result, Exception):
                self._watchers.pop(watcher, None)
            if isinstance(result, Exception):
                logger.warning("socket cut off run=%s error=%s", self._run_id, result)
                with contextlib.suppress(Exception):
                    await watcher.close(code=CUT_OFF)

    # --- in a thread -----------------------------------------------------------------------------

    def _head(self) -> int:
        return Run.objects.values_list("last_seq", flat=True).get(pk=self._run_id)

    def _read(self) -> tuple[str, int]:
        events = queries.events_after(self._run_id, self._seq, self._fitting(self._seq, BATCH))
        if not events:
            return "", self._seq
        run = Run.objects.get(pk=self._run_id)
        return fragments.frame(run, events, self._known), events[-1].seq

    def _catch_up(self, after: int, until: int) -> tuple[str, int]:
        count = self._fitting(after, min(BATCH, until - after))
        events = queries.events_after(self._run_id, after, count)
        if not events:
            return "", until
        run = Run.objects.get(pk=self._run_id)
        return fragments.frame(run, events, {}), events[-1].seq

    def _fitting(self, after: int, limit: int) -> int:
        return bounded.events_that_fit(self._run_id, after, self._head(), limit)


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
