"""The codes by which sockets are closed are such as daphne sends and as pages know."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import daphne.server  # noqa: F401  its reactor has to be there before autobahn takes another
import pytest
from autobahn.twisted.websocket import WebSocketServerProtocol

from gates import inboxes
from runs.feeds import sockets, tails
from tests.services.conftest import ROOT
from tests.soak import watchers


def opened() -> tuple[Any, list[int]]:
    """A protocol of the server's that is open, and what it has sent to end it."""
    sent: list[int] = []

    def keep(code: int, **_: Any) -> None:
        sent.append(code)

    protocol: Any = WebSocketServerProtocol()
    protocol.state = protocol.STATE_OPEN
    protocol.sendCloseFrame = keep
    return protocol, sent


@pytest.mark.parametrize("code", [sockets.SLOW, tails.LOST, inboxes.SIGNED_OUT, 4429])
def test_a_close_is_sent_and_not_refused_by_the_server_itself(code: int) -> None:
    protocol, sent = opened()

    protocol.sendClose(code=code)

    assert sent == [code]
    with pytest.raises(Exception, match="invalid close code 1013"):
        opened()[0].sendClose(code=1013)


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
    protocol, sent = opened()

    class Socket(sockets.LiveSocket):
        async def close(self, code: int | None = None, reason: str | None = None) -> None:
            protocol.sendClose(code=code)

    made = Socket()
    await asyncio.wait_for(made.refuse(sockets.SLOW), 20)
    await asyncio.wait_for(made.refuse(sockets.SLOW), 20)

    assert sent == [sockets.SLOW]
