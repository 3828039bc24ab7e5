"""The bell by PostgreSQL's own NOTIFY, for installations that have no Redis.

A transaction that notifies holds one lock of the whole server from before its commit until after
it, so that all of them commit one after the other. Turns therefore never notify: a thread does
after their commit, in a transaction that waits for no disk.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Collection, Iterator
from typing import Any, Final

import psycopg
from django.db import Error as DatabaseError
from django.db import connection

from runs.bells.far import Ear, FarBell, Told
from runs.bells.hub import EVERYTHING, WORDS, Hub, this_process

CHANNEL: Final = "obversa_bell"
# A payload has less than 8,000 bytes.
PAYLOAD: Final = 7900
# The ringing thread gives its connection back when it was quiet for so long.
IDLE_SECONDS: Final = 5.0
# So often the listening connection is asked whether it lives.
ALIVE_SECONDS: Final = 15.0
_LOOK_SECONDS: Final = 1.0
# What is lost with the server's last moments was only a ring.
_NOTIFY: Final = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)"


class PostgresBell(FarBell):
    """Rings by NOTIFY from a thread of its own; what rings meanwhile goes along with the next."""

    def __init__(self) -> None:
        self._told = Told()
        self._alone()
        # A child of this process has no thread of its parent's.
        os.register_at_fork(after_in_child=self._alone)

    def _alone(self) -> None:
        self._lock = threading.Lock()
        self._is_rung = threading.Event()
        self._waiting: set[str] = set()
        self._thread: threading.Thread | None = None

    def send(self, rings: Collection[str]) -> None:
        with self._lock:
            self._waiting.update(rings)
            if len(self._waiting) > WORDS:
                self._waiting = {EVERYTHING}
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="bell", daemon=True)
                self._thread.start()
        self._is_rung.set()

    def ear(self, hub: Hub) -> Ear:
        return PostgresEar(hub)

    def _work(self) -> None:
        while self._is_rung.wait(IDLE_SECONDS) or not self._may_end():
            self._is_rung.clear()
            with self._lock:
                rings, self._waiting = self._waiting, set()
            for payload in payloads(rings):
                self._notify(payload)
        connection.close()

    def _may_end(self) -> bool:
        with self._lock:
            if not self._waiting:
                self._thread = None
            return self._thread is None

    def _notify(self, payload: str) -> None:
        for attempt in (1, 2):
            try:
                with connection.cursor() as cursor:
                    cursor.execute(_NOTIFY, [CHANNEL, payload])
            except DatabaseError as error:
                # The connection may have been cut long ago: a new one tells.
                connection.close()
                if attempt == 2:
                    self._told.failed(error)
            else:
                self._told.worked()
                return


class PostgresEar(Ear):
    """One connection of the loop that listens, beside the pool."""

    async def heard(self) -> None:
        async with await psycopg.AsyncConnection.connect(**address(), autocommit=True) as listener:
            await listener.execute(f"LISTEN {CHANNEL}")
            # What rang before was not heard.
            self.passed_on([EVERYTHING])
            await self._listen(listener)

    async def _listen(self, listener: psycopg.AsyncConnection[Any]) -> None:
        asked = asyncio.get_running_loop().time()
        while self.followed:
            async for note in listener.notifies(timeout=_LOOK_SECONDS):
                by, *rings = note.payload.split("\n")
                if by != this_process():
                    self.passed_on(rings)
            now = asyncio.get_running_loop().time()
            if now - asked >= ALIVE_SECONDS:
                asked = now
                async with asyncio.timeout(ALIVE_SECONDS):
                    await listener.execute("SELECT 1")


def payloads(rings: Collection[str]) -> Iterator[str]:
    """The rings, in as few payloads as hold them."""
    head = this_process()
    text = head
    for ring in sorted(rings):
        if len(text) + len(ring) + 1 > PAYLOAD:
            yield text
            text = head
        text += "\n" + ring
    if text != head:
        yield text


def address() -> dict[str, Any]:
    """Where the database is, as psycopg wants it told."""
    told = connection.get_connection_params()
    ours = ("cursor_factory", "context", "prepare_threshold")
    return {name: value for name, value in told.items() if name not in ours} | {
        "application_name": "obversa bell",
        "connect_timeout": 5,
        "keepalives_idle": 30,
    }
