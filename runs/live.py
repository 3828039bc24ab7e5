"""The bell: it says "read again" and carries nothing, so a lost ring costs two seconds at most."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable
from functools import cache
from typing import Any, Final
from uuid import UUID
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer
from django.conf import settings

from runs.bells.far import Ear, FarBell, Told, ended
from runs.bells.hub import EVERYTHING, WORDS, Bell, Hub, this_process
from runs.bells.postgresql import PostgresBell

logger = logging.getLogger(__name__)

INBOX = "inbox"
RIGHTS = "rights"
# How long a ring may take to leave this process, in seconds.
PATIENCE: Final = 5.0
# So long after a ring left this process the next one waits, in seconds, and takes along what rings
# meanwhile: pages that look a few times fewer each second show the same, and a ring costs this
# process a fifth of what a step does.
GAP: Final = 0.025
# Changes of so many people at once are everybody's.
MANY: Final = 50


def run_topic(run_id: UUID) -> str:
    """Name the bell of one run."""
    return f"run-{run_id}"


hub = Hub()


def ring(run_id: UUID, seq: int, *, inbox: bool) -> None:
    """Tell whoever watches the run, and the inboxes when a question changed. Never raises."""
    _ring([run_topic(run_id), *([INBOX] if inbox else [])])


def ring_rights(people: Collection[int] | None = None) -> None:
    """Tell open pages and streams to ask again who they show things to. Never raises.

    `people` are the primary keys of those whose rights changed; None is everybody.
    """
    if people is None or len(people) > MANY:
        _ring([f"{RIGHTS}:{EVERYTHING}"])
    elif people:
        _ring([f"{RIGHTS}:{person}" for person in people])


def _ring(rings: Collection[str]) -> None:
    for one in rings:
        hub.ring(one)
    if (far := _far()) is not None:
        far.send(rings)


@contextlib.asynccontextmanager
async def listening(*topics: str) -> AsyncIterator[Bell]:
    """A bell that is set whenever one of the topics rings, from whatever process."""
    bell = hub.listen(*topics)
    ear = _ear()
    if ear is not None:
        for topic in topics:
            ear.follow(topic)
    try:
        yield bell
    finally:
        for topic in topics:
            hub.leave(topic, bell)
            if ear is not None:
                ear.unfollow(topic)


def _far() -> FarBell | None:
    """What rings in other processes, by the setting; nothing where there is one process only."""
    return _far_bell(settings.OBVERSA_BELL)


@cache
def _far_bell(kind: str) -> FarBell | None:
    return {"redis": LayerBell, "postgresql": PostgresBell}.get(kind, lambda: None)()


_ears: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, Ear]] = WeakKeyDictionary()


def _ear() -> Ear | None:
    far = _far()
    if far is None:
        return None
    loop = asyncio.get_running_loop()
    if loop not in _ears:
        _ears[loop] = far.ear(hub)
    return _ears[loop]


class LayerBell(FarBell):
    """Rings through the channel layer, from a loop of its own.

    One long-lived loop per process keeps the layer's connections; nothing waits for it. What rings
    while a ring is under way, or shortly after, goes along with the next.
    """

    def __init__(self) -> None:
        self._told = Told()
        self._alone()
        # A child of this process has no thread of its parent's.
        os.register_at_fork(after_in_child=self._alone)

    def _alone(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[str] = set()
        self._is_sending = False

    def send(self, rings: Collection[str]) -> None:
        with self._lock:
            if len(self._waiting) < WORDS:
                self._waiting.update(rings)
            if self._loop is None or self._loop.is_closed():
                self._is_sending = False
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="bell", daemon=True).start()
            begins, self._is_sending = not self._is_sending, True
        if begins:
            with contextlib.suppress(RuntimeError):  # the interpreter ends
                asyncio.run_coroutine_threadsafe(self._send(), self._loop)

    def ear(self, hub: Hub) -> Ear:
        return LayerEar(hub)

    def _taken(self) -> set[str]:
        """What waits; nobody sends any more when that is nothing."""
        with self._lock:
            rings, self._waiting = self._waiting, set()
            self._is_sending = bool(rings)
            return rings

    async def _send(self) -> None:
        while rings := self._taken():
            await self._sent(rings)
            await asyncio.sleep(GAP)

    async def _sent(self, rings: Collection[str]) -> None:
        by_topic: defaultdict[str, list[str]] = defaultdict(list)
        for one in rings:
            by_topic[one.partition(":")[0]].append(one)
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*map(self._tell, by_topic, by_topic.values()))
        except Exception as error:  # noqa: BLE001  a bell never breaks its ringer
            self._told.failed(error)
        else:
            self._told.worked()

    @staticmethod
    async def _tell(topic: str, rings: Iterable[str]) -> None:
        message = {"type": "bell.rang", "by": this_process(), "rings": list(rings)}
        await get_channel_layer().group_send(topic, message)


class LayerEar(Ear):
    """One channel of the layer for the loop, in the group of each topic that somebody follows."""

    async def heard(self) -> None:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        receiving = asyncio.create_task(self._receive(layer, channel))
        joined: set[str] = set()
        try:
            while self.followed:
                await self._join(layer, channel, joined)
                changing = asyncio.create_task(self.until_changed())
                await asyncio.wait({receiving, changing}, return_when=asyncio.FIRST_COMPLETED)
                await ended(changing)
                if receiving.done():
                    receiving.result()
        finally:
            await ended(receiving)
            for topic in joined:
                with contextlib.suppress(Exception):
                    await layer.group_discard(topic, channel)

    async def _join(self, layer: Any, channel: str, joined: set[str]) -> None:
        for topic in [topic for topic in self.followed if topic not in joined]:
            await layer.group_add(topic, channel)
            joined.add(topic)
            # What rang before was not heard.
            self.hub.ring(f"{topic}:{EVERYTHING}")
        for topic in joined - self.followed.keys():
            await layer.group_discard(topic, channel)
            joined.discard(topic)

    async def _receive(self, layer: Any, channel: str) -> None:
        while True:
            message = await layer.receive(channel)
            if message["by"] != this_process():
                self.passed_on(message["rings"])
