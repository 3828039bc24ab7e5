"""A run's own row: its status in words, how far it is, and when it began and ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from runs.kernel import deadlines
from runs.kernel.actions import ACTION, DOUBT
from runs.kernel.decide import shape_at
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import GraphShape, LeafShape, LoopShape, Shape, leaf_count
from runs.kernel.interactions import PURPOSE as INTERACTION
from runs.kernel.loop_events import COMPLETE, LOOP_TASKS
from runs.kernel.loops import LoopState
from runs.kernel.moments import moment
from runs.kernel.questions import PURPOSE as QUESTION
from runs.kernel.slots import WHEN, Slot
from runs.kernel.state import RunState
from runs.models import Run
from runs.turns.admission import IN_LINE, OUTSIDE
from runs.turns.projection import plain

_FINAL: Final = {
    "pass": Run.Status.PASSED,
    "fail": Run.Status.FAILED,
    "aborted": Run.Status.CANCELLED,
    "exhausted": Run.Status.EXHAUSTED,
}
# Questions that ask for what somebody knows, beside those that ask for a decision.
_QUESTIONS: Final = frozenset({"reconcile", DOUBT, QUESTION, INTERACTION})
_GONE: Final = frozenset({*_FINAL.values(), Run.Status.PAUSED})
_ASLEEP: Final = frozenset({Run.Status.WAITING, Run.Status.RETRY_PENDING})
# Everything of a run's row that a turn may change, but its outcome.
_COPIED: Final = (
    "last_seq",
    "changed_at",
    "status",
    "waiting_on",
    "overridden",
    "held_reason",
    "done_count",
    "wake_at",
    "cancel_requested_at",
    "started_at",
    "ended_at",
    "admission",
)


def columns(run: Run, *, outcome: bool) -> dict[str, Any]:
    """What a turn writes into the run's row: always the same columns, so one known statement.

    The outcome may be long and is written when it changed.
    """
    names = (*_COPIED, "outcome") if outcome else _COPIED
    return {name: getattr(run, name) for name in names}


def copy(run: Run, shape: Shape | None, state: RunState, events: Iterable[Event]) -> None:
    """Set everything a run's row copies from its record; the events are those it has not seen."""
    for event in events:
        at = moment(event.ts)
        run.last_seq, run.changed_at = event.seq, at
        if shape is None:
            run.started_at = run.started_at or at
        match event.kind:
            case EventKind.JOB_START:
                run.started_at = run.started_at or at
            case EventKind.RUN_CANCEL:
                run.cancel_requested_at = at
            case EventKind.RUN_END:
                run.ended_at = at
    run.status, run.waiting_on = run_status(shape, state)
    if run.admission in IN_LINE:
        run.admission = _admission(run.status, state)
    run.overridden = bool(state.overridden)
    run.held_reason = plain(state.held, 10_000)
    run.outcome = None if state.ended is None else state.ended.to_json()
    run.done_count = done_count(shape, state)
    run.wake_at = _wakes_at(state)
    if not state.cancelled:
        run.cancel_requested_at = None
    if run.status not in Run.FINAL:
        run.ended_at = None


def _admission(status: str, state: RunState) -> str:
    """Whether the run has a place among those under way, stands in line, or gave its place back.

    Who waits for a person keeps it, unless the workflow says otherwise; who ended or was stopped
    does not, once nothing of it is at work any more.
    """
    gives_back = status in _GONE or (state.lends and status in _ASLEEP)
    at_work = status == Run.Status.PAUSED and any(
        slot.status == "running" for slot in (*state.checks.values(), *state.slots.values())
    )
    return OUTSIDE if gives_back and not at_work else state.admission


def run_status(shape: Shape | None, state: RunState) -> tuple[str, list[str]]:
    """The run's status and, when it waits, for which kinds of request (design section 4)."""
    if shape is None:
        waits = any(held.is_live for held in state.callbacks.requests.values())
        return (Run.Status.WAITING, ["gate"]) if waits else (Run.Status.RUNNING, [])
    if state.ended is not None:
        return _FINAL.get(state.ended.status, Run.Status.PAUSED), []
    if state.held:
        return Run.Status.PAUSED, []
    if state.stands_in_line:
        return Run.Status.QUEUED, []
    busy, kinds = _activity(shape, state)
    if busy:
        slots = (*state.checks.values(), *state.slots.values())
        began = any(slot.started_at for slot in slots) or kinds
        return (Run.Status.RUNNING if began else Run.Status.QUEUED), []
    if state.waits:
        return Run.Status.RETRY_PENDING, sorted(kinds)
    if kinds:
        return Run.Status.WAITING, sorted(kinds)
    return Run.Status.PAUSED, []


def _wakes_at(state: RunState) -> datetime | None:
    """When the first thing that waits for its time may go on, or a question's is over (I12)."""
    asleep = state.ended is not None or state.held or state.cancelled or state.stands_in_line
    times = [] if asleep else list(state.waits.values())
    over = deadlines.next_at(state)
    times += [] if over is None else [over]
    return moment(min(times)) if times else None


def _activity(shape: Shape, state: RunState) -> tuple[bool, set[str]]:
    """Whether a worker has or will get something, and the kinds of question still open."""
    busy = False
    kinds: set[str] = set()
    for slot in _open_slots(shape, state):
        if slot.status in ("queued", "running", "lost"):
            busy = True
        elif slot.status == "asking":
            held = state.callbacks.requests.get(slot.request_id)
            if held is not None and held.is_live:
                purpose = slot.ask.get("purpose") if slot.ask is not None else None
                kinds.add(_kind(purpose))
    return busy, kinds


def _kind(purpose: object) -> str:
    if purpose == ACTION:
        return "approval"
    return "question" if purpose in _QUESTIONS else "gate"


def _open_slots(shape: Shape, state: RunState) -> Iterator[Slot]:
    if isinstance(shape, LeafShape):
        yield state.slots.get((), Slot())
        return
    composites = {path[:-1] for path in (*state.scopes, *state.loops)}
    for path, scope in state.scopes.items():
        if scope.ended is not None:
            continue
        for name in scope.names(scope.open):
            inner = (*path, name)
            if scope.nodes[name].status == "checking":
                yield state.checks[WHEN, inner]
            elif inner not in composites:
                yield state.slots[inner]
    for path, loop in state.loops.items():
        yield from _open_in_loop(shape, path, loop, state)


def _open_in_loop(shape: Shape, path: Path, loop: LoopState, state: RunState) -> Iterator[Slot]:
    for task in LOOP_TASKS if loop.is_open else (COMPLETE,):
        check = state.checks.get((task, path))
        if check is not None and check.status in ("queued", "running"):
            yield check
    slot = state.slots.get(path)
    is_leaf = isinstance(shape_at(shape, path, state.loops), LeafShape)
    if loop.is_open and slot is not None and is_leaf:
        yield slot


def done_count(shape: Shape | None, state: RunState) -> int:
    """How many of the steps a person counts have ended."""
    if shape is None:
        return 0
    if isinstance(shape, LeafShape):
        return int(state.slots.get((), Slot()).status == "ended")
    return _done(shape, (), state)


def _done(job: GraphShape | LoopShape, slot: Path, state: RunState) -> int:
    path = (*slot, job.name)
    if isinstance(job, LoopShape):
        loop = state.loops.get(path)
        return 0 if loop is None else _loop_done(job, path, loop, state)
    scope = state.scopes.get(path)
    if scope is None:
        return 0
    count = 0
    for node in job.nodes:
        if not isinstance(node.job, LeafShape):
            if scope.nodes[node.name].status != "idle":
                count += _done(node.job, (*path, node.name), state)
        elif scope.nodes[node.name].status == "done":
            count += 1
    return count


def _loop_done(job: LoopShape, path: Path, loop: LoopState, state: RunState) -> int:
    """The steps of this round; all of them once the loop is over."""
    if loop.ended is not None and loop.ended.status != "paused":
        return leaf_count(job)
    if loop.in_review:
        return leaf_count(job.body) + int(loop.review is not None)
    if isinstance(job.body, LeafShape):
        return int(loop.body is not None)
    return _done(job.body, path, state)
