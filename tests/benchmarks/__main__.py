"""`python -m tests.benchmarks`: measure, and print one table.

Nothing here is a test and nothing asserts a time. It needs PostgreSQL and Redis; peers that are not
installed are named and left out. The quick form takes less than three minutes.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Final

from tests.benchmarks import cycles, document, lists, machine, pages, scales, sockets, steps
from tests.benchmarks.rows import Row, markdown
from tests.benchmarks.stage import Stage, stage
from tests.benchmarks.systems.base import Missing, System
from tests.benchmarks.systems.celery_chain import BareCelery
from tests.benchmarks.systems.dbos_workflow import Dbos
from tests.benchmarks.systems.floor import Floor
from tests.benchmarks.systems.langgraph_graph import LangGraph, LangGraphAsync
from tests.benchmarks.systems.obversa import Obversa

QUICK: Final = cycles.Size(rounds=2, idle=6, cycles=100, concurrent=100)
FULL: Final = cycles.Size(rounds=7, idle=30, cycles=400, concurrent=100)
PARTS: Final = ("steps", "cycles", "sockets", "scales", "inbox", "lists", "workers")
WORKERS: Final = 2
# The last part alone has more: workers are added and never taken away.
MOST_WORKERS: Final = 4


class Measurement:
    """One run of the benchmarks: the parts that were asked for, on one stage."""

    def __init__(self, made: Stage, *, full: bool) -> None:
        self._stage = made
        self._full = full
        self._ours, self._bare = Obversa(made), BareCelery(made)
        self.opened: list[System] = []
        self.trouble: list[str] = []

    def log(self) -> str:
        """The last words of the processes."""
        return self._stage.log()

    def parts(self) -> dict[str, Callable[[], Iterator[Row]]]:
        """Every part by its name, in the order in which they are measured."""
        return {
            "steps": self._steps,
            "cycles": self._cycles,
            "sockets": self._sockets,
            "scales": self._scales,
            "inbox": pages.measured,
            "lists": lambda: lists.measured(full=self._full),
            "workers": self._workers,
        }

    def _steps(self) -> Iterator[Row]:
        for workers in range(1, WORKERS + 1):
            self._open(workers)
            yield from steps.measured(self._bare, workers, full=self._full)

    def _workers(self) -> Iterator[Row]:
        self._open(MOST_WORKERS)
        return steps.measured(self._bare, MOST_WORKERS, full=self._full)

    def _cycles(self) -> Iterator[Row]:
        self._open(WORKERS)
        size = FULL if self._full else QUICK
        ready: list[System] = [self._ours]
        missing: list[System] = []
        system: System
        graph = LangGraph(self._stage)
        for system in (Dbos(self._stage), graph, LangGraphAsync(graph)):
            try:
                system.open(WORKERS)
            except Missing as trouble:
                missing.append(system)
                self.trouble.append(f"{system.name}: {trouble}")
            else:
                ready.append(system)
        floor = Floor(self._stage)
        floor.open(WORKERS)
        ready += [self._bare, floor]
        self.opened = [*ready, *missing]
        yield from cycles.measured(ready, size)
        for system in missing:
            yield Row(
                what=cycles.rate_of(size), who=system.name, words="not measured: not installed"
            )
        for system in ready:
            if system not in (self._ours, self._bare):
                system.close()

    def _sockets(self) -> Iterator[Row]:
        self._open(WORKERS)
        return sockets.measured(self._stage, changes=60 if self._full else 20)

    def _scales(self) -> Iterator[Row]:
        self._open(WORKERS)
        if self._full:
            return scales.measured(waiting=500, longest=2000)
        return scales.measured(waiting=100, longest=200)

    def _open(self, workers: int) -> None:
        _say(f"{workers} workers ...")
        self._ours.open(workers)
        self._bare.open(workers)


def main() -> None:
    """Set the stage, measure, print; with --keep, write it down."""
    options = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    options.add_argument("--full", action="store_true", help="more rounds, longer runs")
    options.add_argument("--only", action="append", choices=PARTS, help="one part; repeatable")
    options.add_argument("--keep", action="store_true", help="write docs/performance.md")
    given = options.parse_args()
    began = time.monotonic()
    # Ended from outside, it takes its databases and processes away as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    about = machine.described()
    with stage() as made:
        _prepare()
        measurement = Measurement(made, full=given.full)
        rows, failed = _measured(measurement, given.only)
    about.append(f"{'full' if given.full else 'quick'} form, {time.monotonic() - began:.0f} s")
    sys.stdout.write("\n".join([*about, "", markdown(rows), *measurement.trouble, ""]))
    if given.keep:
        document.keep(rows, about, measurement.opened)
    if failed:
        sys.exit(f"broken off: {', '.join(failed)}")


def _measured(measurement: Measurement, only: list[str] | None) -> tuple[list[Row], list[str]]:
    """The rows of the parts, and the parts that broke off; the others are measured anyway."""
    rows: list[Row] = []
    failed = []
    for name, part in measurement.parts().items():
        if only is None or name in only:
            _say(f"{name} ...")
            try:
                rows += part()
            except Exception:  # noqa: BLE001  whatever a peer raises, and the table is still worth it
                _say(f"{measurement.log()}\n{traceback.format_exc()}")
                failed.append(name)
                rows.append(Row(what=name, words="not measured: it broke off"))
    return rows, failed


def _prepare() -> None:
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command

    from runs import registry

    call_command("migrate", verbosity=0)
    registry.refresh()
    User.objects.create_user("bench", password=None)


def _say(words: str) -> None:
    sys.stderr.write(words + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
