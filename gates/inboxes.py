"""One reading of a person's inbox for all their open pages."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Any, Final

from django.db.models import Max

from gates import fragments
from gates.models import Request
from runs import live
from runs.bells.hub import EVERYTHING
from runs.feeds import frames, sights, sockets
from runs.feeds.threads import in_thread

logger = logging.getLogger(__name__)

# However often the bell rings, a person's inbox is read this often at most.
PAUSE_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 30.0
# So often one look for all of them finds what no bell told.
GLANCE_SECONDS: Final = 2.0
SIGNED_OUT: Final = 4401


class Inbox:
    """The live inbox of one person, for as long as a page of theirs is open."""

    def __init__(self, user_pk: int, registry: Inboxes) -> None:
        self._user_pk = user_pk
        self._registry = registry
        self._news = fragments.InboxNews(user_pk)
        # Pages and when they were made; the new ones have not been told anything yet.
        self._new: dict[Any, int] = {}
        self._told: dict[Any, None] = {}
        self._asked = 0.0
        self._must_ask = True
        self._bell: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    def join(self, page: sockets.LiveSocket, since: int) -> None:
        """Tell this page what it lacks, and then what is new."""
        self._new[page] = since
        # What it was let in by may be over since.
        self._must_ask = True
        if self._bell is not None:
            self._bell.set()
        if self._task is None:
            self._task = asyncio.create_task(self._watch())

    def leave(self, page: sockets.LiveSocket) -> None:
        """Tell it nothing more."""
        self._new.pop(page, None)
        self._told.pop(page, None)
        if not self._new and not self._told and self._task is not None:
            self._task.cancel()
            self._task = None
            self._registry.drop(self)

    async def _watch(self) -> None:
        async with live.listening(live.INBOX, live.RIGHTS) as bell:
            self._bell = bell
            bell.set()
            while True:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(bell.wait(), LOOK_SECONDS)
                words = bell.taken()
                began = time.monotonic()
                is_old = began - self._asked >= LOOK_SECONDS
                if is_old or words & {EVERYTHING, str(self._user_pk)}:
                    self._must_ask = True
                try:
                    if self._must_ask:
                        await self._ask(began)
                    await self._read()
                except fragments.SignedOut:
                    self._close([*self._new, *self._told], SIGNED_OUT)
                except Exception:
                    logger.exception("inbox could not be read user=%s", self._user_pk)
                    await asyncio.sleep(GLANCE_SECONDS)
                    bell.set()
                await asyncio.sleep(max(0.0, PAUSE_SECONDS - (time.monotonic() - began)))

    async def _ask(self, now: float) -> None:
        """Close what belongs to a session that has ended, before anything is shown there."""
        self._must_ask = False
        pages = [*self._new, *self._told]
        try:
            people = await in_thread(sights.still_here, [page.scope for page in pages])
        except Exception:
            self._must_ask = True
            raise
        self._asked = now
        pairs = zip(pages, people, strict=True)
        self._close([page for page, person in pairs if not person.is_authenticated], SIGNED_OUT)

    async def _read(self) -> None:
        new, told = dict(self._new), list(self._told)
        if not new and not told:
            return
        news, openings = await in_thread(self._frames, set(new.values()))
        for page, since in new.items():
            if self._new.pop(page, None) is not None:
                self._told[page] = None
                self._show(page, openings[since])
        for page in told:
            if page in self._told:
                self._show(page, news)

    def _frames(self, made: set[int]) -> tuple[frames.Frame, dict[int, frames.Frame]]:
        news = frames.Frame(self._news.frame())
        return news, {since: frames.Frame(self._news.opening(since)) for since in made}

    def _show(self, page: Any, frame: frames.Frame) -> None:
        if frame and not page.outlet.show(frame):
            self._close([page], sockets.SLOW)

    def _close(self, pages: list[Any], code: int) -> None:
        for page in pages:
            self._new.pop(page, None)
            self._told.pop(page, None)
            task = asyncio.create_task(page.refuse(code))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)


class Inboxes:
    """The inboxes of this process that somebody looks at."""

    def __init__(self) -> None:
        self._inboxes: dict[tuple[int, int], Inbox] = {}
        self._glances: dict[int, asyncio.Task[None]] = {}

    def of(self, user_pk: int) -> Inbox:
        """The inbox of a person in the running loop."""
        loop = id(asyncio.get_running_loop())
        if loop not in self._glances:
            self._glances[loop] = asyncio.create_task(self._glance())
        if (loop, user_pk) not in self._inboxes:
            self._inboxes[loop, user_pk] = Inbox(user_pk, self)
        return self._inboxes[loop, user_pk]

    def drop(self, inbox: Inbox) -> None:
        """Nobody looks at it any more."""
        loop = id(asyncio.get_running_loop())
        self._inboxes = {key: one for key, one in self._inboxes.items() if one is not inbox}
        if loop in self._glances and not any(key[0] == loop for key in self._inboxes):
            self._glances.pop(loop).cancel()

    async def _glance(self) -> None:
        """Whether any question changed, for all of them: a ring may have been lost."""
        known = None
        while True:
            with contextlib.suppress(Exception):
                found = await in_thread(_last_change)
                if known is not None and found != known:
                    live.hub.ring(live.INBOX)
                known = found
            await asyncio.sleep(GLANCE_SECONDS)


def _last_change() -> Any:
    """The moment of the last change, one index entry for each status."""
    moments = (
        Request.objects.filter(status=status).aggregate(at=Max("changed_at"))["at"]
        for status in Request.Status.values
    )
    return max((moment for moment in moments if moment is not None), default=None)


inboxes: Final = Inboxes()
