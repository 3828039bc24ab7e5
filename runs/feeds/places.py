"""How many connections one caller holds: nobody takes the places of all others."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Final

from ninja.errors import Throttled

PER_CALLER = 500
# What all of them together hold for a reader that is slow, in characters.
MOST_WAITING = 32 * 1024 * 1024
# A browser opens two for a page of a run and one for any other.
SOCKETS_PER_PERSON = 100
AGAIN_SECONDS: Final = 2
_lock: Final = threading.Lock()
_held: Final[Counter[str]] = Counter()
_waiting: Final[Counter[str]] = Counter()


class Place:
    """One held connection, counted from its first part until it is left."""

    def __init__(self, caller: str) -> None:
        self._caller = caller
        self._is_taken = False

    def take(self, most: int) -> bool:
        """Hold the place unless the caller holds `most` already; whether it is held now."""
        with _lock:
            if not self._is_taken and _held[self._caller] < most:
                _held[self._caller] += 1
                self._is_taken = True
            elif not _held[self._caller]:
                del _held[self._caller]
            return self._is_taken

    async def keep(
        self, parts: AsyncGenerator[str, None], spare: str = ""
    ) -> AsyncGenerator[str, None]:
        """The parts of the answer; a connection that never begins is never counted.

        Where too much waits for this caller's readers already, the answer ends with `spare`.
        """
        with _lock:
            _held[self._caller] += 1
            self._is_taken = True
        try:
            async with contextlib.aclosing(parts):
                async for part in parts:
                    if not self._may_wait(len(part)):
                        if spare:
                            yield spare
                        return
                    try:
                        # A server that is held up by its reader comes back late.
                        yield part
                    finally:
                        self._waits(-len(part))
        finally:
            self.leave()

    def _may_wait(self, size: int) -> bool:
        with _lock:
            waiting = _waiting[self._caller]
            if waiting and waiting + size > MOST_WAITING:
                return False
            _waiting[self._caller] += size
            return True

    def _waits(self, size: int) -> None:
        with _lock:
            _waiting[self._caller] += size
            if not _waiting[self._caller]:
                del _waiting[self._caller]

    def leave(self) -> None:
        """Give the place back; again is nothing."""
        with _lock:
            if self._is_taken:
                self._is_taken = False
                _held[self._caller] -= 1
            if not _held[self._caller]:
                del _held[self._caller]


def for_socket(person: object) -> Place:
    """A place for a page's socket; they are counted apart from the API's connections."""
    return Place(f"socket of {person}")


def of(caller: str) -> Place:
    """A place for the caller in this process; raises Throttled when all of its places are held."""
    if _held[caller] >= PER_CALLER:
        raise Throttled(wait=AGAIN_SECONDS)
    return Place(caller)


def waiting_for(caller: str) -> int:
    """How many characters wait for the caller's readers now."""
    return _waiting[caller]


def held_by(caller: str) -> int:
    """How many the caller holds now."""
    return _held[caller]
