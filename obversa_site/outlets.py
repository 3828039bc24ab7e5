"""How a frame gets to a browser's socket when daphne is the server.

The standard way encodes a text for every socket and hands it to the loop, which writes it when it
comes by again. Of a frame that many sockets get, the bytes are made once and written at once. What
does not fit waits in memory: a socket whose reader takes nothing is cut off when that is too much.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

from autobahn.websocket.protocol import PreparedMessage

from runs.feeds import frames

logger = logging.getLogger(__name__)


class Outlets:
    """An ASGI application whose sockets find daphne's own way in their scope."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        # Daphne's `send` is a partial that begins with the connection.
        protocol = next(iter(getattr(send, "args", ())), None)
        if hasattr(protocol, "is_outlet"):
            extensions = {**(scope.get("extensions") or {}), frames.EXTENSION: protocol}
            scope = {**scope, "extensions": extensions}
        await self._app(scope, receive, send)


def open_outlets() -> None:
    """Make daphne's sockets write frames at once and bound what waits for a reader."""
    server = sys.modules.get("daphne.ws_protocol")
    if server is None or hasattr(server.WebSocketFactory.protocol, "is_outlet"):
        return  # another server calls us
    bases = (OutletProtocol, server.WebSocketProtocol)
    server.WebSocketFactory.protocol = type("Socket", bases, {})


class OutletProtocol:
    """What a connection of daphne's does beside what it does anyway."""

    is_outlet = True
    # The connection as daphne, Autobahn and Twisted have it.
    transport: Any
    state: int
    STATE_OPEN: int
    send_queue: Any
    # What waits beyond the server's own buffer, in bytes; None while that is not full.
    _waiting: int | None = None
    _emptied: asyncio.Event | None = None

    def onOpen(self) -> None:  # noqa: N802  Autobahn calls it so
        super().onOpen()  # type: ignore[misc]  # the other base has it
        # Until now the channel of the handshake was told of a full buffer.
        self.transport.unregisterProducer()
        self.transport.registerProducer(self, True)

    def show(self, frame: frames.Frame) -> bool:
        """Send it without waiting; False when the socket is closed or closes for its backlog."""
        if self.state != self.STATE_OPEN:
            return False
        if frame.wire is None:
            frame.wire = PreparedMessage(
                frame.data, isBinary=False, applyMask=False, doNotCompress=True
            ).payloadHybi
        transport = self.transport
        # Private names of Twisted's: where they are not, the frame goes the usual way.
        is_busy = self.send_queue or getattr(transport, "_tempDataLen", 1)
        done = 0
        if not (is_busy or transport.dataBuffer or transport.TLS or transport.disconnecting):
            written = transport.writeSomeData(frame.wire)
            # A connection that is lost is found out by whoever writes next.
            done = written if isinstance(written, int) else 0
        if done < len(frame.wire):
            self.sendData(frame.wire[done:])
        return self.state == self.STATE_OPEN

    async def drained(self) -> None:
        """Wait until little is left to send; raises TimeoutError when nobody reads."""
        if self._waiting is not None:
            self._emptied = self._emptied or asyncio.Event()
            self._emptied.clear()
            async with asyncio.timeout(frames.PATIENCE):
                await self._emptied.wait()

    def sendData(self, data: bytes, *args: Any, **options: Any) -> None:  # noqa: N802
        """Write, or cut off whoever takes nothing."""
        super().sendData(data, *args, **options)  # type: ignore[misc]  # the other base has it
        if self._waiting is not None:
            self._waiting += len(data)
            if self._waiting > frames.BACKLOG:
                logger.warning("socket cut off, nobody reads bytes=%s", self._waiting)
                self.dropConnection(abort=True)  # type: ignore[attr-defined]  # so has this

    def pauseProducing(self) -> None:  # noqa: N802  Twisted calls it so
        """The server's buffer is full."""
        self._waiting = self._waiting or 0

    def resumeProducing(self) -> None:  # noqa: N802  Twisted calls it so
        """It is empty."""
        self._waiting = None
        if self._emptied is not None:
            self._emptied.set()
        if self.transport.disconnecting:
            self.transport.unregisterProducer()

    def stopProducing(self) -> None:  # noqa: N802  Twisted calls it so
        """The connection is gone."""
        self.resumeProducing()
