"""Many sockets in a process of their own: `python -m tests.benchmarks.socket_clients`.

Takes one line of JSON, `{"host", "port", "path", "cookies"}`, one socket per cookie; says `ready`
when all are open; takes the number of the last event, waits until every socket has it, and gives
`{seq: [when it arrived, ...]}`. The moment is taken when the bytes are read, before anything is
done with them. WebSocket is spoken by hand for that: frames of a server are not masked, and all it
takes to stay open is an answer to its pings.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import sys
import time
from base64 import b64encode
from collections import defaultdict
from typing import Any

SEQ = re.compile(rb'data-seq="(\d+)"')
PING, PONG = 0x9, 0xA
AT_ONCE = 10
PATIENCE = 60.0


class Client(asyncio.Protocol):
    """One socket: shakes hands, answers pings, notes when frames came."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._buffer = b""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.frames: list[tuple[float, bytes]] = []

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self._buffer += data
        if not self.opened.done():
            head, rest, self._buffer = self._buffer.partition(b"\r\n\r\n")
            if not rest:
                self._buffer = head
                return
            if b" 101 " not in head:
                self.opened.set_exception(ConnectionError(head.decode("latin-1")[:200]))
                return
            self.opened.set_result(None)
        while frame := self._next():
            code, payload = frame
            if code == PING:
                self._transport.write(
                    bytes([0x80 | PONG, 0x80 | len(payload)]) + bytes(4) + payload
                )
            else:
                self.frames.append((now, payload))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("closed"))

    def has(self, mark: bytes) -> bool:
        """Whether a frame holds these bytes; the newest are looked at first."""
        return any(mark in payload for _, payload in reversed(self.frames))

    def _next(self) -> tuple[int, bytes] | None:
        if len(self._buffer) < 2:
            return None
        size, start = self._buffer[1] & 0x7F, 2
        if size > 125:
            start = 4 if size == 126 else 10
            size = int.from_bytes(self._buffer[2:start], "big")
        if len(self._buffer) < start + size:
            return None
        code, payload = self._buffer[0] & 0xF, self._buffer[start : start + size]
        self._buffer = self._buffer[start + size :]
        return code, payload


async def main() -> None:
    """Open, wait, tell."""
    loop = asyncio.get_running_loop()
    given = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    limit = asyncio.Semaphore(AT_ONCE)

    async def opened(cookie: str) -> Client:
        async with limit:
            _, client = await loop.create_connection(
                lambda: Client(_handshake(given, cookie)), given["host"], given["port"]
            )
            await client.opened
            return client

    clients = await asyncio.gather(*(opened(cookie) for cookie in given["cookies"]))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    last = (await loop.run_in_executor(None, sys.stdin.readline)).strip()
    mark, until = f'data-seq="{last}"'.encode(), time.monotonic() + PATIENCE
    # Frames are noted and nothing more, so that noting them costs nothing: look again.
    while time.monotonic() < until and not all(client.has(mark) for client in clients):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    arrived: defaultdict[str, list[float]] = defaultdict(list)
    for client in clients:
        for when, payload in client.frames:
            for seq in {found.decode() for found in SEQ.findall(payload)}:
                arrived[seq].append(when)
    sys.stdout.write(json.dumps(arrived) + "\n")
    sys.stdout.flush()


def _handshake(given: dict[str, Any], cookie: str) -> bytes:
    host = f"{given['host']}:{given['port']}"
    lines = [
        f"GET {given['path']} HTTP/1.1",
        f"Host: {host}",
        f"Origin: http://{host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {b64encode(secrets.token_bytes(16)).decode()}",
        "Sec-WebSocket-Version: 13",
        f"Cookie: {cookie}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


if __name__ == "__main__":
    asyncio.run(main())
