"""A websocket as a browser opens it, for tests that have no browser: handshake and text frames."""

from __future__ import annotations

import base64
import os
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_TEXT: Final = 1
_CLOSE: Final = 8
_PING: Final = 9
_WITHOUT_CODE: Final = 1005
_BROKEN: Final = 1006


class Refused(Exception):
    """The handshake was not accepted; the status line says why."""


class Closed(EOFError):
    """The server has closed; `code` is what it said, 1006 as in a browser where it said nothing."""

    def __init__(self, code: int = _BROKEN) -> None:
        super().__init__(code)
        self.code = code


class Socket:
    """An open websocket; frames of the server come whole."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""

    def handshake(self, host: str, path: str, cookie: str, origin: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", f"Origin: {origin}",
            f"Cookie: {cookie}", "", "",
        ]  # fmt: skip
        self._connection.sendall("\r\n".join(lines).encode())
        while b"\r\n\r\n" not in self._buffer:
            self._receive()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        status = head.decode("latin-1").partition("\r\n")[0]
        if " 101 " not in status:
            raise Refused(status)

    def text(self) -> str:
        """The next text; raises TimeoutError when none comes, Closed when the server closed."""
        while (found := self._frame()) is None:
            pass
        return found

    def text_within(self, seconds: float) -> str | None:
        """The next frame's text, or nothing when none begins in this time or it is no text."""
        if not self._buffer and not select.select([self._connection], [], [], seconds)[0]:
            return None
        return self._frame()

    def _frame(self) -> str | None:
        """One frame of the server, dealt with; its text where it is one."""
        head = self._take(2)
        kind, size = head[0] & 0x0F, head[1] & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", self._take(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._take(8))
        body = self._take(size)
        if kind == _CLOSE:
            raise Closed(struct.unpack(">H", body[:2])[0] if len(body) > 1 else _WITHOUT_CODE)
        if kind == _PING:
            # A client's frames are masked; a mask of zeros changes nothing.
            self._connection.sendall(bytes([0x8A, 0x80 | len(body)]) + bytes(4) + body)
        return body.decode() if kind == _TEXT else None

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._receive()
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def _receive(self) -> None:
        data = self._connection.recv(65536)
        if not data:
            raise Closed
        self._buffer += data


@contextmanager
def opened(
    port: int, path: str, *, cookie: str, origin: str = "", seconds: float = 20
) -> Iterator[Socket]:
    """A socket at a port of this machine; raises Refused."""
    host = f"127.0.0.1:{port}"
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        made = Socket(connection)
        made.handshake(host, path, cookie, origin or f"http://{host}")
        yield made
