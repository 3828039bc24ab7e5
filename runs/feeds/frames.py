"""A frame for many sockets, and the way it takes to each of them.

What is sent is made once and written many times. A reader that does not read is not waited for:
what waits for it is bounded, and then its socket is closed. It comes back and catches up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, Self

# The most that waits for one reader, in bytes.
BACKLOG: Final = 4 * 1024 * 1024
# How long one that catches up may take for what it was sent, in seconds.
PATIENCE: Final = 30.0
# Where a server that can write a frame to a socket at once says so in a scope.
EXTENSION: Final = "obversa.frames"


class Frame(str):
    """A text for sockets whose bytes are made once, however many get it.

    `data` is the text in UTF-8; `wire` has room for what the server makes of it.
    """

    __slots__ = ("data", "wire")
    data: bytes
    wire: Any

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text)
        made.data = text.encode()
        made.wire = None
        return made


class Outlet(Protocol):
    """The way to one browser."""

    def show(self, frame: Frame) -> bool:
        """Send it without waiting; False when the socket is closed or closes for its backlog."""

    async def drained(self) -> None:
        """Wait until little is left to send; raises TimeoutError when nobody reads."""


def outlet(scope: Any, send: Callable[[Any], Awaitable[None]]) -> Outlet:
    """The server's own way where it has one, or a queue before the standard one."""
    found: Outlet | None = (scope.get("extensions") or {}).get(EXTENSION)
    return Queued(send) if found is None else found


class Queued:
    """A bounded queue before an ASGI server, which may make a sender wait."""

    def __init__(self, send: Callable[[Any], Awaitable[None]]) -> None:
        self._send = send
        self._frames: deque[Frame] = deque()
        self._size = 0
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self._is_closed = False
        self._task: asyncio.Task[None] | None = None

    def show(self, frame: Frame) -> bool:
        if self._is_closed or self._size > BACKLOG:
            return False
        self._frames.append(frame)
        self._size += len(frame.data)
        self._is_empty.clear()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write())
        return True

    async def drained(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._is_empty.wait()

    async def close(self) -> None:
        """Send nothing more."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._task

    async def _write(self) -> None:
        try:
            while self._frames:
                frame = self._frames[0]
                await self._send({"type": "websocket.send", "text": frame})
                self._frames.popleft()
                self._size -= len(frame.data)
            self._is_empty.set()
        except Exception:  # noqa: BLE001  whatever the server says of a socket that is gone
            self._is_closed = True
