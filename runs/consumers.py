"""The socket of the run page: a bell, a reading of the record, and fragments."""

from __future__ import annotations

from typing import Final

from runs import live
from runs.feeds import sights
from runs.feeds.sockets import LiveSocket
from runs.feeds.tails import LOST, Feed, feeds
from runs.feeds.threads import in_thread

# "Internal error": a page comes back after it (static/js/live.js).
CUT_OFF: Final = 1011


class RunConsumer(LiveSocket):
    """Sends what happened after the event the page already shows; takes nothing."""

    _feed: Feed | None = None

    async def connect(self) -> None:
        run_id = self.scope["url_route"]["kwargs"]["pk"]
        asked = live.hub.told
        if not (await in_thread(sights.still_see, run_id, [self.scope]))[0]:
            await self.close(code=LOST)
            return
        if await self.opened():
            after = self.asked("after")
            self._feed = feeds.of(run_id)
            seen = int(after) if after.isdecimal() and len(after) < 16 else 0
            try:
                await self._feed.join(self, seen, asked)
            except Exception:
                # The server cuts it off and tells nobody: its place and its feed forget it now.
                await self.disconnect(CUT_OFF)
                raise

    async def disconnect(self, code: int) -> None:
        if self._feed is not None:
            self._feed.leave(self)
        await self.left()
