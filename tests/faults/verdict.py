"""What became of a run, held against what had to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from runs.archive import rebuild
from runs.kernel.events import EventKind
from runs.kernel.slots import JOB
from runs.models import Attempt, Event, Run
from tests.faults import scene, work
from tests.faults.people import RECONCILE

ONCE = (EventKind.RUN_START, EventKind.RUN_END, EventKind.SEND_BACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """How a run ends, what it leaves outside, which events it has once, what may be repeated."""

    effects: list[str]
    status: str = Run.Status.PASSED
    once: tuple[EventKind, ...] = ONCE
    may_repeat: Callable[[list[str]], bool] = lambda path: True


@dataclass(kw_only=True)
class Verdict:
    """One run: what is wrong with it, and effects it has more than once, asked about or not."""

    wrong: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    twice_after_asking: list[str] = field(default_factory=list)
    asked: int = 0


def expected_of(run_id: object, workflow: str) -> Expected:
    """What a run of the fault suite's own work comes to."""
    return Expected(
        effects=work.expected(run_id, workflow),
        once=ONCE if workflow != work.FORKED else ONCE[:2],
        may_repeat=lambda path: workflow == work.SAFE or path[-1] == "review",
    )


def by_run(effects: Iterable[str]) -> dict[str, list[str]]:
    """All effects, each with the run that it belongs to."""
    found: dict[str, list[str]] = {}
    for line in effects:
        found.setdefault(line.partition("/")[0], []).append(line)
    return found


def judge(run: Run, expected: Expected | None = None, effects: list[str] | None = None) -> Verdict:
    """Hold a run against what is expected of it; by itself it reads all effects anew."""
    expected = expected or expected_of(run.pk, run.workflow)
    if effects is None:
        effects = by_run(scene.notes("effects")).get(str(run.pk), [])
    run.refresh_from_db()
    events = list(Event.objects.filter(run=run).order_by("seq"))
    kinds = Counter(event.kind for event in events)
    asked = _paths_asked_about(events)
    found = Verdict(asked=len(asked))
    if run.status != expected.status:
        found.wrong.append(f"ended {run.status}, not {expected.status}")
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        found.wrong.append("the sequence has gaps")
    found.wrong += [f"{kinds[kind]} of {kind}" for kind in expected.once if kinds[kind] != 1]
    if left := Attempt.objects.filter(run=run, status__in=["ready", "running"]).count():
        found.wrong.append(f"{left} attempts are left")
    if sorted(asked) != sorted(_lost_for_good(expected, events)):
        found.wrong.append(f"asked about {asked}")
    _judge_effects(Counter(effects), sorted(expected.effects), asked, found)
    if off := rebuild.rebuild(run.pk):
        found.wrong.append(f"{off} rows are off")
    return found


def _judge_effects(
    effects: Counter[str], expected: list[str], asked: list[str], found: Verdict
) -> None:
    if sorted(effects) != expected:
        found.wrong.append(f"effects differ: {sorted(set(effects) ^ set(expected))}")
    for mark, count in effects.items():
        if count > 1:
            path = mark.split("/", 1)[1].rpartition("/")[0]
            (found.twice_after_asking if path in asked else found.twice).append(mark)


def _paths_asked_about(events: list[Event]) -> list[str]:
    asked = [event.payload for event in events if event.kind == "callback-requested"]
    gates = [str(payload["request"]["gateId"]) for payload in asked]
    return [gate.removeprefix(RECONCILE) for gate in gates if gate.startswith(RECONCILE)]


def _lost_for_good(expected: Expected, events: list[Event]) -> list[str]:
    """The steps that were lost and may not be repeated; each has to be asked about, once."""
    lost = [event for event in events if event.kind == EventKind.STEP_LOST]
    return [
        "/".join(event.path)
        for event in lost
        if _task(event) == JOB and not expected.may_repeat(event.path)
    ]


def _task(event: Event) -> Any:
    return event.payload.get("task", JOB)
