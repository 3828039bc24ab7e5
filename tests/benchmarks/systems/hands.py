"""Processes that do the work of a library which brings no workers of its own.

Each takes lines `begin RUN` and `answer RUN`, with another word where a system has ways, and gives
lines `waiting RUN` and `done RUN TIME`; threads within it do the work. What is measured is the
library, not how its workers are told.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar
from uuid import uuid4

from tests.benchmarks.stage import Process, wait_for
from tests.benchmarks.systems.base import System

THREADS = 4


class Hands(System):
    """A system whose runs are handed to its processes in turn."""

    module: str
    way: ClassVar[str] = ""

    def open(self, workers: int) -> None:
        self._waiting: set[str] = set()
        self._done: dict[str, float] = {}
        self._turns = itertools.count()
        self._ready = 0
        for _ in range(workers):
            process = self.stage.process(self.module, self.url, talks=True)
            self.processes.append(process)
            threading.Thread(target=self._hear, args=(process,), daemon=True).start()
        wait_for(lambda: self._ready == workers)

    def join(self, other: Hands) -> None:
        """Work with the processes of another, in another way."""
        self.url, self.processes = other.url, other.processes
        self._waiting, self._done, self._turns = other._waiting, other._done, other._turns

    def begin(self) -> str:
        run = str(uuid4())
        self._tell("begin", run)
        return run

    def waiting(self) -> Iterable[str]:
        return list(self._waiting)

    def answer(self, run: str) -> None:
        self._waiting.discard(run)
        self._tell("answer", run)

    def done(self) -> int:
        return len(self._done)

    def began(self, run: str) -> float | None:
        return self._done.get(run)

    def close(self) -> None:
        for process in self.processes:
            self.stage.end(process)

    def _tell(self, what: str, run: str) -> None:
        process = self.processes[next(self._turns) % len(self.processes)]
        assert process.stdin is not None
        process.stdin.write(f"{what} {run} {self.way}\n")
        process.stdin.flush()

    def _hear(self, process: Process) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            match line.split():
                case ["ready"]:
                    self._ready += 1
                case ["waiting", run]:
                    self._waiting.add(run)
                case ["done", run, began]:
                    self._done[run] = float(began)


def serve(begin: Callable[..., None], answer: Callable[..., float]) -> None:
    """Take lines until there are no more; `answer` returns when step B began."""

    def work(what: str, run: str, *way: str) -> None:
        if what == "begin":
            begin(run, *way)
            _say(f"waiting {run}")
        else:
            _say(f"done {run} {answer(run, *way)}")

    _say("ready")
    with ThreadPoolExecutor(THREADS) as pool:
        for line in sys.stdin:
            pool.submit(work, *line.split()).add_done_callback(_tell_trouble)


def _tell_trouble(done: object) -> None:
    if trouble := getattr(done, "exception", lambda: None)():
        sys.stderr.write(f"{trouble!r}\n")
        sys.stderr.flush()


_lock = threading.Lock()


def _say(line: str) -> None:
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
