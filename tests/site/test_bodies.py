"""A body that is too long is not taken in: not by the application, and not by its server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from daphne.http_protocol import HTTPFactory
from django.conf import LazySettings
from twisted.internet.testing import StringTransport

from obversa_site.bodies import PATIENCE_BYTES, BoundedBodies, bound_daphne

LIMIT = 1000


@pytest.fixture(autouse=True)
def small(settings: LazySettings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = LIMIT


class Seen:
    """An application that reads its whole body, and a client that sends one in pieces."""

    def __init__(self, pieces: list[bytes], headers: list[tuple[bytes, bytes]]) -> None:
        self.scope: Any = {"type": "http", "headers": headers}
        self.body = b""
        self.length = b""
        self.called = False
        self.left_when_called = 0
        self._sent = [
            {"type": "http.request", "body": piece, "more_body": number < len(pieces)}
            for number, piece in enumerate(pieces, 1)
        ]
        self.left = len(self._sent)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        self.called = True
        self.left_when_called = self.left
        self.length = dict(scope["headers"]).get(b"content-length", b"")
        while True:
            message = await receive()
            self.body += message["body"]
            if not message["more_body"]:
                break
        assert (await receive())["type"] == "http.disconnect"

    async def receive(self) -> Any:
        if not self.left:
            return {"type": "http.disconnect"}
        self.left -= 1
        return self._sent[-self.left - 1]

    def run(self) -> Seen:
        async def send(message: Any) -> None: ...

        asyncio.run(BoundedBodies(self.app)(self.scope, self.receive, send))
        return self


def test_a_body_of_exactly_the_limit_arrives_whole() -> None:
    seen = Seen([b"a" * 400, b"b" * 600], [(b"content-length", b"1000")]).run()

    assert seen.body == b"a" * 400 + b"b" * 600
    assert seen.length == b"1000"


def test_a_body_that_announces_too_much_is_not_read() -> None:
    seen = Seen([b"x" * 1001], [(b"Content-Length", b"1001")])
    seen.run()

    assert (seen.called, seen.body, seen.left_when_called) == (True, b"", 1)


def test_a_body_without_a_length_is_read_to_the_limit_and_no_further() -> None:
    seen = Seen([b"x" * 400] * 100, [(b"transfer-encoding", b"chunked")])
    seen.run()

    assert seen.body == b""
    assert int(seen.length) == 1200  # of 40,000
    assert seen.left_when_called == 100 - 3


def test_a_client_that_goes_away_in_the_middle_is_not_served() -> None:
    seen = Seen([], [])
    seen.run()

    assert not seen.called


class Server:
    """As much of daphne's server as a request needs."""

    root_path = ""
    proxy_forwarded_address_header = None
    request_buffer_size = 8192

    def __init__(self) -> None:
        self.scopes: list[Any] = []

    def protocol_connected(self, protocol: Any) -> None: ...

    def protocol_disconnected(self, protocol: Any) -> None: ...

    def create_application(self, protocol: Any, scope: Any) -> Any:
        self.scopes.append(scope)
        self.messages: Any = asyncio.Queue()
        return self.messages


def sent_to_daphne(head: bytes, *pieces: bytes) -> tuple[Server, Any, Any]:
    bound_daphne()
    server = Server()
    transport: Any = StringTransport()  # type: ignore[no-untyped-call]  # Twisted tells no types
    made = HTTPFactory(server).buildProtocol(None)
    made.makeConnection(transport)
    channel = made._channel
    channel.dataReceived(b"POST /x HTTP/1.1\r\nHost: here\r\n" + head + b"\r\n\r\n")
    for piece in pieces:
        channel.dataReceived(piece)
    channel.setTimeout(None)
    return server, channel, transport


def test_daphne_keeps_nothing_of_a_body_that_announces_too_much() -> None:
    server, _, _ = sent_to_daphne(b"Content-Length: 5000", b"x" * 3000, b"x" * 2000)

    assert (b"content-length", b"5000") in server.scopes[0]["headers"]
    assert server.messages.get_nowait()["body"] == b""


def test_daphne_keeps_nothing_beyond_the_limit_of_a_body_in_chunks() -> None:
    chunks = [b"3e8\r\n" + b"x" * 1000 + b"\r\n"] * 5
    server, channel, _ = sent_to_daphne(b"Transfer-Encoding: chunked", *chunks)
    content = channel.requests[-1].content
    kept = content.tell()
    channel.dataReceived(b"0\r\n\r\n")
    channel.setTimeout(None)
    content.close()

    assert kept <= LIMIT
    assert (b"content-length", b"5000") in server.scopes[0]["headers"]


def test_daphne_takes_an_honest_body_whole() -> None:
    server, _, _ = sent_to_daphne(b"Content-Length: 1000", b"x" * 400, b"x" * 600)

    assert server.messages.get_nowait()["body"] == b"x" * 1000


def test_daphne_cuts_off_who_goes_on_sending() -> None:
    piece = b"x" * 1_000_000
    count = PATIENCE_BYTES // len(piece) + 2
    _, _, transport = sent_to_daphne(b"Content-Length: 99999999999", *[piece] * count)

    assert transport.value().startswith(b"HTTP/1.1 413 ")
    assert transport.disconnecting
