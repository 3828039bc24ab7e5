"""Steps a second: chains of Obversa beside bare Celery chains of the same length."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from tests.benchmarks import flows
from tests.benchmarks.rows import OURS, Row
from tests.benchmarks.stage import wait_for
from tests.benchmarks.systems.celery_chain import BareCelery
from tests.benchmarks.systems.obversa import start

Chains = Callable[[int, int], None]
# How many chains go at once, and how long each is.
SHAPES: Final = ((1, 20), (8, 20), (1, 200))


def measured(bare: BareCelery, workers: int, *, full: bool) -> Iterator[Row]:
    """Rounds of every shape with the workers that run now."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    systems: dict[str, Chains] = {
        OURS: _chains,
        bare.name: lambda chains, steps: _bare_chains(bare, chains, steps),
    }
    for run in systems.values():
        run(2, 20)
    for _ in range(5 if full else 2):
        for shape in SHAPES if full else SHAPES[:2]:
            for who, run in systems.items():
                began = time.monotonic()
                run(*shape)
                rate = shape[0] * shape[1] / (time.monotonic() - began)
                found[_called(*shape, workers), who].append(rate)
    for (what, who), values in found.items():
        bare_rate = statistics.median(found[what, bare.name])
        share = f"{statistics.median(values) / bare_rate:.0%} of {bare.name}'s"
        words = share if who == OURS else ""
        yield Row(what=what, who=who, values=values, unit="a second", words=words)


def _called(chains: int, steps: int, workers: int) -> str:
    what = f"one chain of {steps}" if chains == 1 else f"{chains} chains of {steps} at once"
    return f"steps a second, {what}, {workers} worker{'s' if workers > 1 else ''}"


def _chains(chains: int, steps: int) -> None:
    from runs.models import Run

    runs = [start(flows.chain_of(steps)).pk for _ in range(chains)]
    done = Run.objects.filter(pk__in=runs, status="passed")
    wait_for(lambda: done.count() == chains, seconds=240)


def _bare_chains(bare: BareCelery, chains: int, steps: int) -> None:
    for key in [bare.chain(steps) for _ in range(chains)]:
        bare.ended(key)
