"""The codes by which sockets are closed are such as daphne sends and as pages know."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from autobahn.twisted.websocket import WebSocketServerFactory, WebSocketServerProtocol

from gates import inboxes
from runs.feeds import sockets, tails
from tests.services.conftest import ROOT
from tests.soak import watchers


class Protocol(WebSocketServerProtocol):  # type: ignore[misc]  # it ships no types
    """One that is open and keeps what it would send."""

    def __init__(self) -> None:
        super().__init__()
        self.state = self.STATE_OPEN
        self.sent: list[Any] = []

    def sendCloseFrame(self, code: int | None = None, **_: Any) -> None:  # noqa: N802  autobahn's
        self.sent.append(code)


@pytest.mark.parametrize("code", [sockets.SLOW, tails.LOST, inboxes.SIGNED_OUT, 4429])
def test_a_close_is_sent_and_not_refused_by_the_server_itself(code: int) -> None:
    protocol = Protocol()
    protocol.factory = WebSocketServerFactory()

    protocol.sendClose(code=code)

    assert protocol.sent == [code]


def test_a_page_that_read_too_slowly_comes_back() -> None:
    script = (ROOT / "static" / "js" / "live.js").read_text()
    found = re.search(r"COME_BACK = \[([\d, ]+)\]", script)
    assert found is not None
    codes = tuple(int(code) for code in found[1].split(","))

    assert sockets.SLOW in codes
    assert not {tails.LOST, inboxes.SIGNED_OUT, 4429} & set(codes)
    # The soak's own sockets do as the page does.
    assert codes == watchers.COME_BACK


async def test_a_socket_whose_reader_is_too_slow_is_closed() -> None:
    class Socket(sockets.LiveSocket):
        def __init__(self) -> None:
            super().__init__()
            self.protocol = Protocol()
            self.protocol.factory = WebSocketServerFactory()

        async def close(self, code: int | None = None, reason: str | None = None) -> None:
            self.protocol.sendClose(code=code)

    made = Socket()
    await asyncio.wait_for(made.refuse(sockets.SLOW), 20)
    await asyncio.wait_for(made.refuse(sockets.SLOW), 20)

    assert made.protocol.sent == [sockets.SLOW]
