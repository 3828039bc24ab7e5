"""What became of a run, held against what had to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from runs.archive import rebuild
from runs.kernel.events import EventKind
from runs.kernel.slots import JOB
from runs.models import Attempt, Event, Run
from tests.faults import scene, work
from tests.faults.people import RECONCILE

ONCE = (EventKind.RUN_START, EventKind.RUN_END, EventKind.SEND_BACK)


@dataclass(kw_only=True)
class Verdict:
    """One run: what is wrong with it, and effects it has more than once, asked about or not."""

    wrong: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    twice_after_asking: list[str] = field(default_factory=list)
    asked: int = 0


def judge(run: Run) -> Verdict:
    run.refresh_from_db()
    events = list(Event.objects.filter(run=run).order_by("seq"))
    kinds = Counter(event.kind for event in events)
    asked = _paths_asked_about(events)
    found = Verdict(asked=len(asked))
    if run.status != Run.Status.PASSED:
        found.wrong.append(f"ended {run.status}")
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        found.wrong.append("the sequence has gaps")
    found.wrong += [f"{kinds[kind]} of {kind}" for kind in ONCE if kinds[kind] != 1]
    if left := Attempt.objects.filter(run=run, status__in=["ready", "running"]).count():
        found.wrong.append(f"{left} attempts are left")
    if sorted(asked) != sorted(_lost_for_good(run, events)):
        found.wrong.append(f"asked about {asked}")
    _judge_effects(run, asked, found)
    if off := rebuild.rebuild(run.pk):
        found.wrong.append(f"{off} rows are off")
    return found


def _judge_effects(run: Run, asked: list[str], found: Verdict) -> None:
    effects = Counter(line for line in scene.notes("effects") if line.startswith(str(run.pk)))
    expected = work.expected(run.pk, run.workflow)
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


def _lost_for_good(run: Run, events: list[Event]) -> list[str]:
    """The steps that were lost and may not be repeated; each has to be asked about, once."""
    lost = [event for event in events if event.kind == EventKind.STEP_LOST]
    return [
        "/".join(event.path)
        for event in lost
        if run.workflow == work.UNSAFE and _task(event) == JOB and event.path[-1] != "review"
    ]


def _task(event: Event) -> Any:
    return event.payload.get("task", JOB)
