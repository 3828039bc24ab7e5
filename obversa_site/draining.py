"""A web process that is told to stop: it says so, finishes what is under way, and sends people on.

On the first SIGTERM `/readyz` says 503, and for `OBVERSA_DRAIN_SECONDS` all goes on as before,
so that whoever spreads the load may look. Then it takes no new connection, closes sockets with a
code after which pages come back at once (to another process, since this one does not listen), ends
streams, and waits for requests under way, for `PATIENCE_SECONDS` at most. A second signal stops it
at once.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from django.conf import settings

from runs.feeds import streams

# "Service restart": static/js/live.js and the socket extension come back after it.
RESTART: Final = 1012
PATIENCE_SECONDS: Final = 10.0
# Requests on connections that somebody keeps, sent before they could know.
LINGER_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.05
_state = {"leaving": False}


def is_leaving() -> bool:
    """Whether this process was told to stop."""
    return _state["leaving"]


class Drain:
    """The end of one server, in the thread of its reactor."""

    def __init__(self, server: Any, reactor: Any) -> None:
        self._server = server
        self._reactor = reactor
        self._left_at = 0.0

    def begin(self, notice: float) -> None:
        """Say that this process is leaving, and leave after the notice; again is at once."""
        if _state["leaving"]:
            self._server.stop()
            return
        _state["leaving"] = True
        self._reactor.callLater(notice, self._leave)

    def _leave(self) -> None:
        for reader in self._reactor.getReaders():
            if hasattr(reader, "stopListening"):
                # Who has connected already would be cut off unheard.
                reader.doRead()
                reader.stopListening()
        for protocol in self._protocols("WebSocketProtocol"):
            if protocol.state == protocol.STATE_OPEN:
                protocol.sendCloseFrame(code=RESTART)
        streams.end_all()
        self._left_at = time.monotonic()
        self._look()

    def _look(self) -> None:
        gone = time.monotonic() - self._left_at
        is_quiet = gone > LINGER_SECONDS and not self._protocols("WebRequest")
        if is_quiet or gone > PATIENCE_SECONDS:
            self._server.stop()
        else:
            self._reactor.callLater(_LOOK_SECONDS, self._look)

    def _protocols(self, kind: str) -> list[Any]:
        """What is open: requests that have no answer yet, or sockets."""
        return [
            protocol
            for protocol, details in list(self._server.connections.items())
            if "disconnected" not in details
            and any(base.__name__ == kind for base in type(protocol).__mro__)
        ]


def drain_daphne() -> None:
    """Let a daphne that was started by its own command drain on SIGTERM and SIGINT."""
    daphne = sys.modules.get("daphne.server")
    if daphne is None or hasattr(daphne.Server, "drains"):
        return  # another server calls us

    class DrainingServer(daphne.Server):  # type: ignore[misc, name-defined]  # found at run time
        drains = True

        def run(self) -> None:
            if self.signal_handlers:
                # Twisted sets its own when it starts; ours come after them.
                on_signals(self, settings.OBVERSA_DRAIN_SECONDS)
            super().run()

    daphne.Server = DrainingServer  # type: ignore[attr-defined]  # daphne looks it up there
    cli = sys.modules.get("daphne.cli")
    if cli is not None:
        cli.CommandLineInterface.server_class = DrainingServer
    close_connections()


def on_signals(server: Any, notice: float) -> None:
    """Drain this server on the first signal, stop it on the second."""
    from twisted.internet import reactor

    drain = Drain(server, reactor)

    def told(*_: Any) -> None:
        reactor.callFromThread(drain.begin, notice)

    def listen() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, told)

    reactor.callWhenRunning(listen)


def drained(server: Any, notice: float = 0.0) -> Callable[[], None]:
    """What drains this server, from whatever thread."""
    from twisted.internet import reactor

    drain = Drain(server, reactor)
    return lambda: reactor.callFromThread(drain.begin, notice)


def close_connections() -> None:
    """Let whoever keeps connections open learn, with each answer, that this one will not stay."""
    http = sys.modules["daphne.http_protocol"]

    class LeavingRequest(http.WebRequest):  # type: ignore[misc, name-defined]  # found at run time
        def handle_reply(self, message: dict[str, Any]) -> None:
            if _state["leaving"] and message.get("type") == "http.response.start":
                # Its connection has nothing to say any more where the client went away.
                if self.channel is not None:
                    self.channel.persistent = False
                self.responseHeaders.setRawHeaders(b"connection", [b"close"])
            super().handle_reply(message)

    http.WebRequest = LeavingRequest  # type: ignore[attr-defined]  # daphne looks it up there
