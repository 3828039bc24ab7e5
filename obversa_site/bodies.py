"""How much of a request's body is taken in, before anything reads it.

The page or the JSON of the refusal is made where it always is (obversa_site/middleware.py): what
is too long gets there with its length and without its bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

from django.conf import settings

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]

_NOTHING: Final = {"type": "http.request", "body": b"", "more_body": False}
# Up to here what is too long is read and dropped, so that its sender hears why; then it is cut off.
PATIENCE_BYTES: Final = 64 * 1024 * 1024


def limit() -> int:
    """The longest body that is taken in, in bytes."""
    return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE or sys.maxsize)


class BoundedBodies:
    """An ASGI application that sees of a body that is too long nothing but its length."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if _announced(scope) > limit():
            await self._app(scope, _once(dict(_NOTHING), receive), send)
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return  # the client went away before it had said what it wants
            body += message.get("body", b"")
            if len(body) > limit():
                told = _telling(scope, len(body))
                await self._app(told, _once(dict(_NOTHING), receive), send)
                return
            if not message.get("more_body", False):
                break
        whole = {"type": "http.request", "body": bytes(body), "more_body": False}
        await self._app(scope, _once(whole, receive), send)


def _announced(scope: Any) -> int:
    for name, value in scope["headers"]:
        if name.lower() == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _telling(scope: Any, length: int) -> Any:
    """The scope of a request that did not say how long it is."""
    kept = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
    return {**scope, "headers": [*kept, (b"content-length", str(length).encode())]}


def _once(first: Message, then: Receive) -> Receive:
    """What a server would hand over: the body, and later that the client went away."""
    waiting = [first]

    async def receive() -> Any:
        if waiting:
            return waiting.pop()
        message = await then()
        while message["type"] == "http.request":
            message = await then()  # the rest of what was refused, which nobody keeps
        return message

    return receive


def bound_daphne() -> None:
    """Make daphne drop what is too long as it comes; it stores a whole body before it asks us."""
    server = sys.modules.get("daphne.http_protocol")
    if server is None or getattr(server.WebRequest, "is_bounded", False):
        return  # another server calls us

    from obversa_site.readers import PacedRequest

    class BoundedRequest(PacedRequest, server.WebRequest):  # type: ignore[misc, name-defined]  # found at run time
        is_bounded = True
        _taken = 0
        _is_dropped = False
        _is_cut_off = False

        def gotLength(self, length: int | None) -> None:  # noqa: N802  Twisted calls it so
            self._is_dropped = length is not None and length > limit()
            super().gotLength(0 if self._is_dropped else length)

        def handleContentChunk(self, data: bytes) -> None:  # noqa: N802  Twisted calls it so
            self._taken += len(data)
            self._is_dropped = self._is_dropped or self._taken > limit()
            if not self._is_dropped:
                super().handleContentChunk(data)
            elif self._taken > PATIENCE_BYTES and not self._is_cut_off:
                self._is_cut_off = True
                self.channel.transport.write(b"HTTP/1.1 413 Content Too Large\r\n\r\n")
                self.channel.loseConnection()

        def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802  Twisted calls it so
            if self._is_dropped:
                headers = self.requestHeaders
                headers.setRawHeaders(b"content-length", [str(self._taken).encode()])
                # Twisted would look for the fields of a form in what is not there.
                for name in (b"transfer-encoding", b"content-type"):
                    headers.removeHeader(name)
            super().requestReceived(command, path, version)

    server.WebRequest = BoundedRequest  # type: ignore[attr-defined]  # daphne looks it up there
