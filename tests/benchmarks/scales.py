"""What Obversa costs as runs grow and as many of them wait; nothing is beside it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any, Final

from tests.benchmarks import flows
from tests.benchmarks.rounds import LOOP, ROUNDS, round_costs
from tests.benchmarks.rows import Row, spoken
from tests.benchmarks.stage import wait_for
from tests.benchmarks.systems.obversa import start

LENGTHS: Final = (20, 200, 2000)
FANS: Final = (20, 2000)


def measured(*, waiting: int, longest: int) -> Iterator[Row]:
    """Milliseconds of a step by its run's length, of a round, and beside many that wait."""
    yield from step_costs([each for each in LENGTHS if each <= longest])
    yield from fan_costs()
    if longest >= ROUNDS:
        yield from loop_costs()
    yield waiting_costs(waiting)


def step_costs(lengths: list[int]) -> Iterator[Row]:
    """Milliseconds per step of a chain of fn steps, by its length."""
    base = 0.0
    for count in lengths:
        each = statistics.median(_seconds(count) for _ in range(3 if count < 2000 else 1))
        value = each / count * 1000
        base = base or value
        words = "" if value == base else f"{value / base:.2f} of one of {lengths[0]}"
        yield Row(what=f"a step of {count}", values=[value], words=words)


def fan_costs() -> Iterator[Row]:
    """Milliseconds per step of steps side by side, by how many there are."""
    base = 0.0
    for count in FANS:
        rounds = 3 if count < 2000 else 1
        each = statistics.median(_seconds_of(flows.fan_of(count)) for _ in range(rounds))
        value = each / count * 1000
        base = base or value
        words = "" if value == base else f"{value / base:.2f} of one of {FANS[0]}"
        yield Row(what=f"a step of {count} side by side", values=[value], words=words)


def loop_costs() -> Iterator[Row]:
    """Milliseconds per round of a long loop, by which rounds they are."""
    from runs.models import Run

    run = start(LOOP)
    wait_for(Run.objects.filter(pk=run.pk, status="exhausted").exists, seconds=240)
    for what, value in round_costs(run):
        yield Row(what=what, values=[value])


def waiting_costs(waiting: int) -> Row:
    """A run of 20 steps while many runs wait for answers, beside the same run alone."""
    from runs.models import Run

    alone = [_seconds(20) * 1000 for _ in range(5)]
    for _ in range(waiting):
        start(flows.CYCLE)
    wait_for(lambda: Run.objects.filter(status="waiting").count() >= waiting, seconds=240)
    beside = [_seconds(20) * 1000 for _ in range(5)]
    words = f"{spoken(statistics.median(alone))} ms when none waits"
    return Row(what=f"a run of 20 steps while {waiting} wait", values=beside, words=words)


def _seconds(steps: int) -> float:
    return _seconds_of(flows.chain_of(steps))


def _seconds_of(workflow: str) -> float:
    from runs.models import Run

    began = time.monotonic()
    run: Any = start(workflow)
    wait_for(Run.objects.filter(pk=run.pk, status="passed").exists, seconds=240)
    return time.monotonic() - began
