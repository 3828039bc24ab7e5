"""The socket of the run page: a bell, a reading of the record, and fragments."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer

from runs import access
from runs.feeds import places
from runs.feeds.tails import CUT_OFF, feeds
from runs.feeds.threads import in_thread
from runs.people.principals import Principal
from runs.people.visitors import person_behind


class RunConsumer(AsyncWebsocketConsumer):
    """Sends what happened after the event the page already shows; takes nothing."""

    _feed: Any = None
    _place: places.Place | None = None

    async def connect(self) -> None:
        run_id = self.scope["url_route"]["kwargs"]["pk"]
        if not await in_thread(_may_see, self.scope, run_id):
            await self.close(code=4404)
            return
        self._place = places.for_socket(self.scope["user"].pk)
        if not self._place.take(places.SOCKETS_PER_PERSON):
            await self.close(code=4429)
            return
        await self.accept()
        try:
            await self._watch(run_id)
        except Exception:
            # The server cuts it off, and tells nobody: its place and the feed are not to remember it.
            await self.disconnect(CUT_OFF)
            raise

    async def _watch(self, run_id: Any) -> None:
        query = parse_qs(self.scope.get("query_string", b"").decode("latin-1"))
        after = query.get("after", ["0"])[-1]
        self._feed = feeds.of(run_id)
        await self._feed.join(self, int(after) if after.isdecimal() and len(after) < 16 else 0)
        if not await self.ask_again():  # a right may have ended since it was asked for
            self._feed.leave(self)

    async def disconnect(self, code: int) -> None:
        if self._place is not None:
            self._place.leave()
        if self._feed is not None:
            self._feed.leave(self)

    async def ask_again(self) -> bool:
        """Close, when the session has ended or the person may not see the run any more."""
        may_stay = await in_thread(_may_see, self.scope, self.scope["url_route"]["kwargs"]["pk"])
        if not may_stay:
            await self.close(code=4404)
        return may_stay

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answers come as POSTs; a socket only listens."""


def _may_see(scope: dict[str, Any], run_id: Any) -> bool:
    who = Principal.for_user(person_behind(scope))
    return access.visible_runs(who).filter(pk=run_id).exists()
