"""A web process shows that it lives, and how many sockets it holds, like a worker does.

What only this process knows reaches operators whichever process they ask.
"""

from __future__ import annotations

import logging
import sys
import threading
from typing import Final

from obversa_site.around import sockets
from runs.attempts import heartbeat
from runs.attempts.steady import let_go

logger = logging.getLogger(__name__)

BEAT_SECONDS: Final = 15.0
_over = threading.Event()


def name() -> str:
    """What it is called among the others."""
    return f"web@{heartbeat.here()}"


def beat() -> None:
    """Show it once."""
    heartbeat.beat(name(), "web", sockets=sockets.by_kind())


def when_serving() -> None:
    """Show it for as long as daphne serves in this process; other servers are not known."""
    if "twisted.internet.reactor" not in sys.modules:
        return
    from twisted.internet import reactor

    reactor.callWhenRunning(_begin)
    reactor.addSystemEventTrigger("after", "shutdown", _end)  # type: ignore[arg-type]  # its stub is wrong


def _begin() -> None:
    threading.Thread(target=_live, name="presence", daemon=True).start()


def _live() -> None:
    while True:
        try:
            beat()
        except Exception:
            logger.exception("the web process could not show that it lives")
        finally:
            let_go()
        if _over.wait(BEAT_SECONDS):
            return


def _end() -> None:
    _over.set()
    heartbeat.leave(name())
    let_go()
