"""How much of an answer waits in memory for somebody who reads slowly, or not at all.

Daphne takes whatever it is given: a file of 2 GiB, or a stream nobody reads, would lie in this
process. So whoever makes an answer in pieces waits until the last piece has left the server's
buffer, and a connection that takes nothing for `PATIENCE_SECONDS` is cut off.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from obversa_site.bodies import App, Message, Receive, Send

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 60.0


class PacedAnswers:
    """An ASGI application that is held up where its reader is."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        # Daphne's `send` is a partial that begins with the connection.
        request = next(iter(getattr(send, "args", ())), None)
        if not isinstance(request, PacedRequest):
            await self._app(scope, receive, send)
            return

        async def paced(message: Message) -> None:
            await send(message)
            await request.taken_up()

        await self._app(scope, receive, paced)


class PacedRequest:
    """What a request of daphne's does beside what it does anyway."""

    # As daphne and Twisted have it.
    producer: Any
    # Whether there is room; none while nothing was sent in pieces.
    _room: asyncio.Event | None = None

    @property
    def _connection(self) -> Any:
        # Twisted takes the attribute away from a request that is over.
        return getattr(self, "channel", None)

    def handle_reply(self, message: Message) -> None:
        """Send a part of the answer; the first of several asks to be told when it is enough."""
        if message.get("more_body") and self._room is None and self._connection is not None:
            self._room = asyncio.Event()
            self._room.set()
            self.registerProducer(_Tap(self._room), True)  # type: ignore[attr-defined]
        super().handle_reply(message)  # type: ignore[misc]  # the other base has it

    async def taken_up(self) -> None:
        """Wait until there is room for more; whoever makes none is cut off."""
        if self._room is None or self._room.is_set():
            return
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._room.wait()
        except TimeoutError:
            logger.warning("answer cut off, nobody reads")
            if self._connection is not None:
                self._connection.transport.abortConnection()

    def finish(self) -> None:
        """The answer is whole."""
        self._let_go()
        super().finish()  # type: ignore[misc]  # the other base has it

    def connectionLost(self, reason: Any) -> None:  # noqa: N802  Twisted calls it so
        """Nobody is there any more."""
        self._let_go()
        super().connectionLost(reason)  # type: ignore[misc]  # the other base has it

    def _let_go(self) -> None:
        if self._room is not None:
            self._room.set()
            if self.producer is not None and self._connection is not None:
                self.unregisterProducer()  # type: ignore[attr-defined]  # Twisted's request has it


class _Tap:
    """Hears from Twisted whether the connection's buffer has room."""

    def __init__(self, room: asyncio.Event) -> None:
        self._room = room

    def pauseProducing(self) -> None:  # noqa: N802  Twisted calls it so
        self._room.clear()

    def resumeProducing(self) -> None:  # noqa: N802  Twisted calls it so
        self._room.set()

    def stopProducing(self) -> None:  # noqa: N802  Twisted calls it so
        self._room.set()
