"""Who listens in this process, and how a ring reaches them, whatever thread it comes from."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections import defaultdict
from functools import cache
from typing import Final

EVERYTHING: Final = "*"
# More words than this are everybody.
WORDS: Final = 1000


@cache
def _token(pid: int) -> str:
    return f"{pid}-{secrets.token_hex(6)}"


def this_process() -> str:
    """What this process calls itself to others, so that it does not answer its own rings."""
    return _token(os.getpid())


class Bell(asyncio.Event):
    """Set at every ring of its topic; keeps the words that came with the rings."""

    def __init__(self) -> None:
        super().__init__()
        self.words: set[str] = set()

    def rang(self, word: str) -> None:
        """Take a ring in; of the bell's own loop."""
        if word:
            self.words.add(word if len(self.words) < WORDS else EVERYTHING)
        self.set()

    def taken(self) -> set[str]:
        """The words since the last time; the bell is quiet again."""
        self.clear()
        words, self.words = self.words, set()
        return words


class Hub:
    """Wakes the listeners of this process.

    A ring is `topic` or `topic:word`. The word says what it is about; who listens to the topic
    hears them all.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bells: dict[str, set[tuple[asyncio.AbstractEventLoop, Bell]]] = defaultdict(set)

        # How many rings said what they were about.
        self.told = 0

    def listen(self, *topics: str) -> Bell:
        """A bell of the running loop that is set at every ring of one of the topics."""
        bell = Bell()
        with self._lock:
            for topic in topics:
                self._bells[topic].add((asyncio.get_running_loop(), bell))
        return bell

    def leave(self, topic: str, bell: Bell) -> None:
        """Listen no more to the topic."""
        with self._lock:
            left = {pair for pair in self._bells.get(topic, ()) if pair[1] is not bell}
            if left:
                self._bells[topic] = left
            else:
                self._bells.pop(topic, None)

    def ring(self, ring: str) -> None:
        """Wake whoever listens to the topic of this ring, from any thread."""
        topic, _, word = ring.partition(":")
        with self._lock:
            self.told += bool(word)
            bells = list(self._bells.get(topic, ()))
        for loop, bell in bells:
            try:
                loop.call_soon_threadsafe(bell.rang, word)
            except RuntimeError:
                # The loop is closed: its listener is gone too.
                self.leave(topic, bell)

    def ring_all(self) -> None:
        """Wake everybody: rings may have been lost."""
        with self._lock:
            self.told += 1
            topics = list(self._bells)
        for topic in topics:
            self.ring(f"{topic}:{EVERYTHING}")
