"""What was done and what came back, written down by all who do it at once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A run that the service said it has."""

    id: str
    workflow: str
    params: dict[str, str]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that the service said it has."""

    request: str
    run: str
    actor: str
    response: dict[str, Any]


@dataclass
class Watch:
    """What one socket of a run has shown, over all its connections."""

    run: str
    seqs: list[int] = field(default_factory=list)
    connections: int = 0
    ended: bool = False
    closed: int | None = None


@dataclass
class Ledger:
    """Everything the judge looks at."""

    runs: dict[str, Started] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    cancels: set[str] = field(default_factory=set)
    watches: list[Watch] = field(default_factory=list)
    replies: Counter[tuple[str, str]] = field(default_factory=Counter)
    kills: Counter[tuple[str, str]] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    # When something happened to a process, and when something was seen by anybody outside.
    blows: list[tuple[float, str]] = field(default_factory=list)
    longest_silence: float = 0.0
    _seen: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, what: str, status: str) -> None:
        with self.lock:
            self.replies[what, status] += 1

    def accepted(self, answer: Answer) -> None:
        with self.lock:
            self.answers.append(answer)

    def started(self, run: Started) -> None:
        with self.lock:
            self.runs[run.id] = run

    def struck(self, name: str, how: str) -> None:
        with self.lock:
            self.kills[name, how] += 1
            self.blows.append((time.time(), f"{name} {how}"))

    def tell(self, text: str) -> None:
        with self.lock:
            self.told.append(text)

    def begin(self) -> None:
        """Silence counts from here on."""
        with self.lock:
            self._seen = time.monotonic()
            self.longest_silence = 0.0

    def saw_something(self) -> None:
        """A frame came to somebody."""
        now = time.monotonic()
        with self.lock:
            self.longest_silence = max(self.longest_silence, now - self._seen)
            self._seen = now
