"""What a change of state asks of the world: starts to hand out and starts to take back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from operator import ne

from runs.kernel.events import Path
from runs.kernel.graph import Shape
from runs.kernel.places import is_handed_out
from runs.kernel.slots import JOB, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class StartStep:
    """Give this start of a job (or of a check written as code) to a worker."""

    path: Path
    number: int
    task: str = JOB


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawStep:
    """Take back a start that no worker has claimed."""

    path: Path
    number: int
    task: str = JOB


Command = StartStep | WithdrawStep
Start = tuple[str, Path]
Queued = Mapping[Start, int]


def commands(shape: Shape, before: RunState, after: RunState) -> list[Command]:
    """What the change from one state to the other asks of the world."""
    found: list[Command] = []
    if after.stands_in_line:
        # What is due stays so, and is handed out when the run's turn comes.
        return found
    waited = before.stands_in_line and not after.cancelled
    if before.queued is after.queued and not waited:
        return found
    gone = list(_only_in(before.queued, after.queued))
    for task, path in gone:
        number = before.queued[task, path]
        if is_handed_out(shape, task, path, before.loops):
            slot = after.slots[path] if task == JOB else after.checks[task, path]
            if slot.number != number or not slot.started_at:
                found.append(WithdrawStep(path=path, number=number, task=task))
    if not waited and len(before.queued) - len(gone) == len(after.queued):
        return found
    for task, path in after.queued if waited else _only_in(after.queued, before.queued):
        if is_handed_out(shape, task, path, after.loops):
            number = after.queued[task, path]
            found.append(StartStep(path=path, number=number, task=task))
    return found


def _only_in(these: Queued, those: Queued) -> Iterator[Start]:
    """The starts of these that are not in those, in their order: thousands may be due at once."""
    return compress(these, map(ne, these.values(), map(those.get, these)))
