"""Rings that leave this process by the channel layer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable

import pytest

from runs import live

PATIENCE = 30


class Heard:
    """What was told to other processes, by topic, each message as one list of rings."""

    def __init__(self) -> None:
        self.messages: queue.Queue[tuple[str, set[str]]] = queue.Queue()
        self.begun = threading.Event()
        self.go_on = threading.Event()

    async def tell(self, topic: str, rings: Iterable[str]) -> None:
        self.begun.set()
        # The loop is the bell's own: nothing else waits for it.
        assert self.go_on.wait(PATIENCE)
        self.messages.put((topic, set(rings)))

    def next(self) -> tuple[str, set[str]]:
        return self.messages.get(timeout=PATIENCE)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    made = Heard()
    monkeypatch.setattr(live.LayerBell, "_tell", staticmethod(made.tell))
    return made


def test_what_rings_while_a_ring_is_under_way_goes_along_with_the_next(heard: Heard) -> None:
    bell = live.LayerBell()
    bell.send(["run-1"])
    assert heard.begun.wait(PATIENCE)
    for number in range(50):
        bell.send(["run-1", f"rights:{number % 3}"])
    heard.go_on.set()

    assert heard.next() == ("run-1", {"run-1"})
    assert dict([heard.next(), heard.next()]) == {
        "run-1": {"run-1"},
        "rights": {"rights:0", "rights:1", "rights:2"},
    }
    assert heard.messages.empty()


def test_a_bell_that_was_quiet_rings_again(heard: Heard) -> None:
    bell = live.LayerBell()
    heard.go_on.set()

    for number in range(5):
        bell.send([f"run-{number}"])
        assert heard.next() == (f"run-{number}", {f"run-{number}"})


def test_a_ring_that_fails_keeps_none_of_the_next_from_leaving(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()

    async def fail(topic: str, rings: Iterable[str]) -> None:
        failed.set()
        raise ConnectionError("away")

    bell = live.LayerBell()
    heard.go_on.set()
    with monkeypatch.context() as broken:
        broken.setattr(live.LayerBell, "_tell", staticmethod(fail))
        bell.send(["run-1"])
        assert failed.wait(PATIENCE)
    bell.send(["run-2"])

    assert heard.next() == ("run-2", {"run-2"})
