"""The socket every page has: the count of what waits for this person, and what is new."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Any, Final
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer

from gates import fragments
from runs import live
from runs.feeds import places
from runs.feeds.threads import in_thread
from runs.people.visitors import person_behind

logger = logging.getLogger(__name__)

# However often the bell rings, a page's inbox is read this often at most.
PAUSE_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 30.0


class InboxConsumer(AsyncWebsocketConsumer):
    """Rings lead to a reading of the inbox; the frame says what differs. It takes nothing."""

    _task: asyncio.Task[None] | None = None
    _place: places.Place | None = None

    async def connect(self) -> None:
        if not self.scope["user"].is_authenticated:
            await self.close(code=4401)
            return
        self._place = places.for_socket(self.scope["user"].pk)
        if not self._place.take(places.SOCKETS_PER_PERSON):
            await self.close(code=4429)
            return
        await self.accept()
        self._task = asyncio.create_task(self._watch())

    async def disconnect(self, code: int) -> None:
        if self._place is not None:
            self._place.leave()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answers come as POSTs; a socket only listens."""

    async def _watch(self) -> None:
        news = fragments.InboxNews(self.scope["user"].pk, _since(self.scope))
        async with live.listening(live.INBOX) as bell:
            while True:
                bell.clear()
                began = time.monotonic()
                try:
                    if not (await in_thread(person_behind, self.scope)).is_authenticated:
                        raise fragments.SignedOut
                    frame = await in_thread(news.frame)
                except fragments.SignedOut:
                    await self.close(code=4401)
                    return
                except Exception:
                    logger.exception("inbox could not be read user=%s", self.scope["user"].pk)
                    frame = ""
                if frame:
                    await self.send(text_data=frame)
                await asyncio.sleep(max(0.0, PAUSE_SECONDS - (time.monotonic() - began)))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(bell.wait(), LOOK_SECONDS)


def _since(scope: dict[str, Any]) -> int:
    """When the page that listens was made; nothing where it does not say."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    given = query.get("since", [""])[-1]
    return int(given) if given.isascii() and given.isdigit() and len(given) <= 10 else 0
