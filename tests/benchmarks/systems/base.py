"""What a gate cycle is for every system: begun, found waiting, answered, found done."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from tests.benchmarks.stage import Process, Stage

HOW: Final = "`pip install -c constraints.txt -e '.[bench]'`"


class Missing(LookupError):
    """What has to be installed before a system can be measured."""


class System(ABC):
    """Step A, a question, its answer from outside, step B; all that counts is in PostgreSQL."""

    name: ClassVar[str]
    given: ClassVar[str]  # what it was given, in words

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.url = ""
        self.processes: list[Process] = []

    @property
    def database(self) -> str:
        return urlsplit(self.url).path.lstrip("/")

    @abstractmethod
    def open(self, workers: int) -> None:
        """Have the tables and this many worker processes; raises Missing."""

    @abstractmethod
    def begin(self) -> str:
        """Start a run and return its id."""

    @abstractmethod
    def waiting(self) -> Iterable[str]:
        """The runs that wait for an answer, also those whose answer is under way."""

    @abstractmethod
    def answer(self, run: str) -> None:
        """Give the answer; it is committed, or in the hands of a worker, on return."""

    @abstractmethod
    def done(self) -> int:
        """How many runs have ended since the beginning."""

    @abstractmethod
    def began(self, run: str) -> float | None:
        """When step B of an ended run began, by this machine's clock."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what this process opened; the stage ends the others."""


def load(module: str) -> Any:
    """Import a peer by name; raises Missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = error.name or module
        raise Missing(f"{name} is not installed; {HOW} installs it") from error
