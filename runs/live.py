"""The bell: it says "read again" and carries nothing, so a lost ring costs two seconds at most."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import defaultdict
from collections.abc import AsyncIterator
from uuid import UUID

from channels.layers import get_channel_layer

logger = logging.getLogger(__name__)

INBOX = "inbox"
RIGHTS = "rights"


def run_topic(run_id: UUID) -> str:
    """Name the bell of one run."""
    return f"run-{run_id}"


class Hub:
    """Wakes the listeners of this process, whatever thread rings."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bells: dict[str, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = defaultdict(
            set
        )

    def listen(self, topic: str) -> asyncio.Event:
        """An event of the running loop that is set at every ring."""
        bell = asyncio.Event()
        with self._lock:
            self._bells[topic].add((asyncio.get_running_loop(), bell))
        return bell

    def leave(self, topic: str, bell: asyncio.Event) -> None:
        with self._lock:
            left = {pair for pair in self._bells.get(topic, ()) if pair[1] is not bell}
            if left:
                self._bells[topic] = left
            else:
                self._bells.pop(topic, None)

    def ring(self, topic: str) -> None:
        with self._lock:
            bells = list(self._bells.get(topic, ()))
        for loop, bell in bells:
            try:
                loop.call_soon_threadsafe(bell.set)
            except RuntimeError:
                # The loop is closed: its listener is gone too.
                self.leave(topic, bell)


hub = Hub()


def ring(run_id: UUID, seq: int, *, inbox: bool) -> None:
    """Tell whoever watches the run, and the inboxes when a question changed. Never raises."""
    _ring([run_topic(run_id), *([INBOX] if inbox else [])])


def ring_rights() -> None:
    """Tell every open page and stream to ask again who it shows things to. Never raises."""
    _ring([RIGHTS, INBOX])


def _ring(topics: list[str]) -> None:
    for topic in topics:
        hub.ring(topic)
    if get_channel_layer() is not None:
        _far.send(topics)


class FarBell:
    """Rings in the other processes through the channel layer, from a loop of its own.

    One long-lived loop per process keeps the layer's connections; nothing waits for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def send(self, topics: list[str]) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._send(topics), self._running())
        except RuntimeError:
            logger.warning("bell not rung topics=%s", ",".join(topics))

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="bell", daemon=True).start()
            return self._loop

    async def _send(self, topics: list[str]) -> None:
        layer = get_channel_layer()
        for topic in topics:
            try:
                await layer.group_send(topic, {"type": "bell.rang", "topic": topic})
            except Exception as error:  # noqa: BLE001  a bell never breaks its ringer
                logger.warning("bell not rung topic=%s error=%s", topic, error)


_far = FarBell()


@contextlib.asynccontextmanager
async def listening(topic: str) -> AsyncIterator[asyncio.Event]:
    """An event that is set whenever the topic rings, from whatever process."""
    bell = hub.listen(topic)
    far = asyncio.create_task(_hear_far(topic, bell)) if get_channel_layer() is not None else None
    try:
        yield bell
    finally:
        hub.leave(topic, bell)
        if far is not None:
            far.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await far


async def _hear_far(topic: str, bell: asyncio.Event) -> None:
    """Pass on rings of other processes; a broken layer is tried again, the clock goes on anyway."""
    while True:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        try:
            await layer.group_add(topic, channel)
            while True:
                await layer.receive(channel)
                bell.set()
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                await layer.group_discard(topic, channel)
            raise
        except Exception as error:  # noqa: BLE001  the clock goes on without the bell
            logger.warning("bell not heard topic=%s error=%s", topic, error)
            await asyncio.sleep(2)
