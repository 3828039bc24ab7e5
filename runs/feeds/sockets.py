"""What all sockets of pages have in common: a place, a way out, and that they only listen."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer

from runs.feeds import frames, places

# Of the codes below 3000 daphne lets an application send 1000 alone, and raises instead of closing.
SLOW: Final = 4000


class LiveSocket(AsyncWebsocketConsumer):
    """A socket of a page: it takes nothing, and what it shows waits for nobody."""

    # The bell listens once for the process. A channel of the layer for every socket would be one
    # more subscription each, and without Redis no page could open one.
    channel_layer_alias = "none"

    outlet: frames.Outlet
    _place: places.Place | None = None
    _is_closed = False

    async def opened(self) -> bool:
        """Accept, unless this person has enough sockets."""
        self._place = places.for_socket(self.scope["user"].pk)
        if not self._place.take(places.SOCKETS_PER_PERSON):
            await self.close(code=4429)
            return False
        await self.accept()
        self.outlet = frames.outlet(self.scope, self.base_send)
        return True

    async def left(self) -> None:
        """Give the place back and send nothing more."""
        self._is_closed = True
        if self._place is not None:
            self._place.leave()
        if isinstance(found := getattr(self, "outlet", None), frames.Queued):
            await found.close()

    async def refuse(self, code: int) -> None:
        """Close from this end; what was not sent is dropped."""
        if not self._is_closed:
            self._is_closed = True
            await self.close(code=code)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answers come as POSTs; a socket only listens."""

    def asked(self, name: str) -> str:
        """A parameter of the socket's address."""
        query = parse_qs(self.scope.get("query_string", b"").decode("latin-1"))
        found: Any = query.get(name, [""])
        return str(found[-1])
