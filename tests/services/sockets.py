"""A websocket as a browser opens it, for tests that have no browser: handshake and text frames."""

from __future__ import annotations

import base64
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_TEXT: Final = 1
_CLOSE: Final = 8
_PING: Final = 9


class Refused(Exception):
    """The handshake was not accepted; the status line says why."""


class Socket:
    """An open websocket; frames of the server come whole."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._read = connection.makefile("rb")

    def close(self) -> None:
        self._read.close()

    def handshake(self, host: str, path: str, cookie: str, origin: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
            f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", f"Origin: {origin}",
            f"Cookie: {cookie}", "", "",
        ]  # fmt: skip
        self._connection.sendall("\r\n".join(lines).encode())
        status = self._read.readline().decode()
        if " 101 " not in status:
            raise Refused(status.strip())
        while self._read.readline().strip():
            pass

    def text(self) -> str:
        """The next text; raises TimeoutError when none comes, EOFError when the server closed."""
        while True:
            head = self._read.read(2)
            if len(head) < 2:
                raise EOFError
            kind, size = head[0] & 0x0F, head[1] & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", self._read.read(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self._read.read(8))
            body = self._read.read(size)
            if kind == _TEXT:
                return body.decode()
            if kind == _CLOSE:
                raise EOFError
            if kind == _PING:
                # A client's frames are masked; a mask of zeros changes nothing.
                self._connection.sendall(bytes([0x8A, 0x80 | len(body)]) + bytes(4) + body)


@contextmanager
def opened(
    port: int, path: str, *, cookie: str, origin: str = "", seconds: float = 20
) -> Iterator[Socket]:
    """A socket at a port of this machine; raises Refused."""
    host = f"127.0.0.1:{port}"
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        made = Socket(connection)
        try:
            made.handshake(host, path, cookie, origin or f"http://{host}")
            yield made
        finally:
            made.close()
