"""Gate cycles: start, step A, ask, answer, step B, done, for every system in turn."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.benchmarks import cpu
from tests.benchmarks.rows import Row
from tests.benchmarks.stage import wait_for
from tests.benchmarks.systems.base import System

IDLE: Final = "answer to step B's start, nothing else going on"
COST: Final = "processor time of a cycle"
MEMORY: Final = "memory of a worker process and its children"
CLIENTS: Final = 4
# How often what looks on looks; it has to cost little beside what is measured.
LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rounds: int
    idle: int  # cycles one after the other, a round
    cycles: int  # cycles at once, a round
    concurrent: int


def rate_of(size: Size) -> str:
    """What the row of the rate is called."""
    return f"gate cycles a second, {size.concurrent} runs at once"


def busy_of(size: Size) -> str:
    """What the row of the wait among many runs is called."""
    return f"answer to step B's start, {size.concurrent} runs at once"


@dataclass(frozen=True)
class Load:
    """What many runs at once came to."""

    rate: float  # cycles a second
    spent: dict[str, float]  # seconds of processor by kind of process
    waits: list[float]  # seconds from each answer to its step B


def measured(systems: Sequence[System], size: Size) -> Iterator[Row]:
    """Short rounds, every system in each of them, so that a busy machine is busy for all."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    parts: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    for system in systems:
        idle(system, 3)
        at_once(system, size.concurrent // 2, size.concurrent)
    for number in range(size.rounds):
        # Who goes first changes from round to round.
        for system in [*systems[number % len(systems) :], *systems[: number % len(systems)]]:
            found[IDLE, system.name].append(statistics.median(idle(system, size.idle)) * 1000)
            load = at_once(system, size.cycles, size.concurrent)
            found[rate_of(size), system.name].append(load.rate)
            found[busy_of(size), system.name].append(statistics.median(load.waits) * 1000)
            found[COST, system.name].append(sum(load.spent.values()) / size.cycles * 1000)
            parts[system.name].append(
                {name: seconds / size.cycles * 1000 for name, seconds in load.spent.items()}
            )
            for process in system.processes:
                found[MEMORY, system.name].append(cpu.memory(process.pid) / 1024**2)
    units = {IDLE: "ms", busy_of(size): "ms", rate_of(size): "a second", COST: "ms", MEMORY: "MiB"}
    for what, unit in units.items():
        for system in systems:
            row = Row(what=what, who=system.name, values=found[what, system.name], unit=unit)
            yield row if what != COST else _with_parts(row, parts[system.name])


def _with_parts(row: Row, rounds: list[dict[str, float]]) -> Row:
    names = sorted({name for each in rounds for name in each})
    medians = {name: statistics.median(each.get(name, 0.0) for each in rounds) for name in names}
    words = ", ".join(f"{name} {value:.1f}" for name, value in medians.items())
    return Row(
        what=row.what, who=row.who, values=row.values, unit=row.unit, words=words, parts=medians
    )


def idle(system: System, count: int) -> list[float]:
    """Seconds from sending an answer to step B's first line, one run at a time."""
    found = []
    for _ in range(count):
        run = system.begin()
        wait_for(partial(_is_waiting, system, run), pause=0.01)
        sent = time.time()
        system.answer(run)
        found.append(wait_for(partial(system.began, run), pause=0.02) - sent)
    return found


def _is_waiting(system: System, run: str) -> bool:
    return run in system.waiting()


def at_once(system: System, count: int, concurrent: int) -> Load:
    """Cycles with this many runs in flight."""
    roots = [process.pid for process in system.processes]
    before = cpu.spent(roots, system.database)
    known = system.done()
    started = done = 0
    sent: dict[str, float] = {}
    calls: list[Future[Any]] = []
    began = time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as clients:
        while done < count:
            while started < count and started - done < concurrent:
                calls.append(clients.submit(system.begin))
                started += 1
            for run in system.waiting():
                if run not in sent:
                    sent[run] = 0.0
                    calls.append(clients.submit(_answer, system, run, sent))
            time.sleep(LOOK_SECONDS)
            done = system.done() - known
            for call in calls:
                if call.done():
                    call.result()
            if time.monotonic() - began > 300:
                raise TimeoutError(f"{done} of {count} cycles of {system.name}")
    rate = count / (time.monotonic() - began)
    spent = cpu.between(before, cpu.spent(roots, system.database))
    waits = [found - at for run, at in sent.items() if (found := system.began(run))]
    return Load(rate, spent, waits)


def _answer(system: System, run: str, sent: dict[str, float]) -> None:
    sent[run] = time.time()
    system.answer(run)
