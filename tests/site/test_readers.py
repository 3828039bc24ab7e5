"""An answer goes as fast as it is read: what nobody takes does not pile up in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

import pytest
from daphne.http_protocol import HTTPFactory
from twisted.internet.testing import StringTransport

from obversa_site import readers
from obversa_site.bodies import bound_daphne
from obversa_site.readers import PacedAnswers
from runs.feeds import places

PIECE = b"x" * 1000
START = {"type": "http.response.start", "status": 200, "headers": []}


class Server:
    """As much of daphne as its requests ask for."""

    server_name = "obversa"
    root_path = ""
    request_buffer_size = 8192
    proxy_forwarded_address_header = None
    proxy_forwarded_port_header = None
    proxy_forwarded_proto_header = None

    def __init__(self) -> None:
        self.request: Any = None

    def protocol_connected(self, protocol: Any) -> None: ...

    def protocol_disconnected(self, protocol: Any) -> None: ...

    def log_action(self, *told: Any) -> None: ...

    def create_application(self, protocol: Any, scope: Any) -> Any:
        self.request = protocol
        return asyncio.Queue()


class Wire(StringTransport):
    """A connection that notices when it is cut off."""

    is_aborted = False

    def abortConnection(self) -> None:  # noqa: N802  Twisted calls it so
        self.is_aborted = True
        self.loseConnection()  # type: ignore[no-untyped-call]  # Twisted tells no types


class Sending:
    """An application that sends pieces without end, and the server it sends them to."""

    def __init__(self) -> None:
        bound_daphne()
        self.server, self.wire = Server(), Wire()  # type: ignore[no-untyped-call]  # Twisted's
        made = HTTPFactory(self.server).buildProtocol(None)
        made.makeConnection(self.wire)
        self.channel: Any = made._channel
        self.channel.dataReceived(b"GET /x HTTP/1.1\r\nHost: here\r\n\r\n")
        self.channel.setTimeout(None)
        self.sent = 0
        self.most = 10_000

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        while self.sent < self.most:
            await send({"type": "http.response.body", "body": PIECE, "more_body": True})
            self.sent += 1
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        self.channel.setTimeout(None)

    async def _reply(self, request: Any, message: Any) -> None:
        if getattr(request, "channel", None) is not None:
            request.handle_reply(message)

    def begin(self) -> asyncio.Task[None]:
        send = partial(self._reply, self.server.request)
        return asyncio.create_task(PacedAnswers(self.app)({"type": "http"}, None, send))  # type: ignore[arg-type]


async def turns(number: int = 50) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_an_answer_waits_while_the_buffer_is_full_and_goes_on_when_it_is_not() -> None:
    sending = Sending()
    task = sending.begin()
    await turns()
    assert sending.sent > 1

    sending.channel.pauseProducing()
    await turns()
    before = sending.sent
    await turns(500)
    assert sending.sent == before
    sending.channel.resumeProducing()
    sending.most = before + 5
    await task

    assert sending.sent == before + 5
    written: bytes = sending.wire.value()  # type: ignore[no-untyped-call]  # Twisted tells none
    assert written.count(PIECE) == before + 5
    assert not sending.wire.is_aborted


async def test_whoever_takes_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "PATIENCE_SECONDS", 0.01)
    sending = Sending()
    task = sending.begin()
    await turns()
    sending.channel.pauseProducing()
    await turns()
    sending.most = sending.sent + 1

    async with asyncio.timeout(30):
        await task

    assert sending.wire.is_aborted


async def test_whoever_leaves_keeps_nobody_waiting() -> None:
    sending = Sending()
    task = sending.begin()
    await turns()
    sending.channel.pauseProducing()
    await turns()
    sending.most = sending.sent + 3

    sending.channel.connectionLost(None)
    async with asyncio.timeout(30):
        await task


async def test_another_server_is_left_alone() -> None:
    told: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(START)

    async def send(message: Any) -> None:
        told.append(message)

    await PacedAnswers(app)({"type": "http"}, None, send)  # type: ignore[arg-type]
    assert told == [START]


async def pieces(*texts: str) -> AsyncGenerator[str, None]:
    for text in texts:
        yield text


async def test_what_waits_for_one_callers_readers_is_bounded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "MOST_WAITING", 100)
    slow = places.of("key:slow").keep(pieces("a" * 80, "b"))
    assert await anext(slow) == "a" * 80
    assert places.waiting_for("key:slow") == 80

    stream = places.of("key:slow").keep(pieces("c" * 10, "d" * 30, "never"))
    poll = places.of("key:slow").keep(pieces("e" * 30), "nothing new")
    other = places.of("key:other").keep(pieces("f" * 80))

    assert [part async for part in stream] == ["c" * 10]
    assert [part async for part in poll] == ["nothing new"]
    assert [part async for part in other] == ["f" * 80]
    assert [part async for part in slow] == ["b"]
    assert places.waiting_for("key:slow") == places.held_by("key:slow") == 0


async def test_one_part_larger_than_all_goes_through_alone() -> None:
    large = places.of("key:one").keep(pieces("x" * (places.MOST_WAITING + 1), "y"))

    assert [len(part) async for part in large] == [places.MOST_WAITING + 1, 1]
    assert places.waiting_for("key:one") == 0
