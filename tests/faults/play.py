"""One fault being tried: its runs, the workers, and what goes on meanwhile as it always does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from runs import services, sweep
from runs.kernel.events import EventKind
from runs.models import Attempt, Event, Run
from tests.faults import people, scene
from tests.faults.verdict import Expected
from tests.faults.wire import Wire
from tests.faults.workers import Workers

FINAL = (Run.Status.PASSED, Run.Status.FAILED, Run.Status.EXHAUSTED, Run.Status.CANCELLED)


class Stuck(AssertionError):
    """The runs do not come to what the suite waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A step that is being done: by which worker process, and which of its starts it is."""

    worker: int
    attempt: Attempt

    @classmethod
    def of(cls, line: str) -> Held:
        worker, mark = line.split()
        run, *path = mark.split("/")[:-1]
        starts = Attempt.objects.filter(run=UUID(run), path=path).exclude(worker="")
        return cls(worker=int(worker), attempt=starts.latest("pk"))

    def is_lost(self) -> bool:
        """Whether it was counted as interrupted."""
        return Attempt.objects.filter(pk=self.attempt.pk, status=Attempt.Status.LOST).exists()

    def is_refused(self) -> bool:
        """Whether its result came too late and was refused."""
        refused = Event.objects.filter(run=self.attempt.run_id, kind=EventKind.STEP_REFUSED)
        here = [event.payload["number"] for event in refused if event.path == self.attempt.path]
        return self.attempt.number in here


class Play:
    """The stage of one fault. `answer` and `sweep` are who does that; a fault may replace them."""

    def __init__(self, workers: Workers, wire: Wire, *, count: int, is_short: bool) -> None:
        self.workers = workers
        self.wire = wire
        self.count = count
        self.is_short = is_short
        self.runs: list[Run] = []
        self.answer: Callable[[UUID], Any] = people.answer_all
        self.sweep: Callable[[], Any] = sweep.sweep
        # What its runs come to, where it is not what the suite's work comes to by itself.
        self.expected: Callable[[Run], Expected | None] = lambda run: None

    def start(self, workflow: str, count: int | None = None) -> list[Run]:
        made = [
            services.start_run(workflow, {}, actor=people.WHO)
            for _ in range(self.count if count is None else count)
        ]
        self.runs += made
        return made

    @property
    def unfinished(self) -> list[Run]:
        ours = Run.objects.filter(pk__in=[run.pk for run in self.runs])
        return list(ours.exclude(status__in=FINAL))

    def until(self, is_so: Callable[[], Any], what: str) -> None:
        """Sweep and answer until it is so."""
        end = time.monotonic() + scene.PATIENCE_SECONDS
        while not is_so():
            if time.monotonic() > end:
                raise Stuck(f"{what}: not seen. {self._told()}")
            self.sweep()
            for run in self.unfinished:
                if run.status == Run.Status.WAITING:
                    self.answer(run.pk)
            time.sleep(0.05)

    def to_the_end(self) -> None:
        self.until(lambda: not self.unfinished, "the end of every run")

    def hold(self, moment: str, mark: str = "*") -> Held | None:
        """Hold steps before or after their effect; returns the first, None when all runs end.

        `mark` is how the name of what is held begins; a star is everything.
        """
        known = len(scene.notes(moment))
        scene.put(f"hold-{moment}", mark)

        def held() -> list[str]:
            news = scene.notes(moment)[known:]
            return [line for line in news if line.split()[1].startswith(mark.removeprefix("*"))]

        self.until(lambda: held() or not self.unfinished, f"a step held {moment} its effect")
        return Held.of(held()[0]) if held() else None

    def release(self, moment: str) -> None:
        scene.take(f"hold-{moment}")

    def _told(self) -> str:
        rows = [(run.status, run.waiting_on, run.wake_at) for run in self.unfinished]
        attempts = Attempt.objects.filter(run__in=self.unfinished).exclude(status="done")
        return (
            f"runs={rows} attempts={list(attempts.values())} workers said:\n{self.workers.tail()}"
        )
