"""Listening to the bell: the hub of this process and, scaled out, the channel layer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from channels.layers import get_channel_layer

from runs.live import hub

logger = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def listening(topic: str) -> AsyncIterator[asyncio.Event]:
    """An event that is set whenever the topic rings, from whatever process."""
    bell = hub.listen(topic)
    far = asyncio.create_task(_far(topic, bell)) if get_channel_layer() is not None else None
    try:
        yield bell
    finally:
        hub.leave(topic, bell)
        if far is not None:
            far.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await far


async def _far(topic: str, bell: asyncio.Event) -> None:
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
