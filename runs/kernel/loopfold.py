"""How the events of loops fold into the state of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from runs.kernel import loops, scopes
from runs.kernel.conditions import ConditionResult
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.evolving import evolve
from runs.kernel.loop_events import AFTER, CHECKS, COMPLETE
from runs.kernel.loops import Evidence, LoopState, Span
from runs.kernel.outcomes import Outcome
from runs.kernel.scopes import NodeState
from runs.kernel.slots import (
    RunState,
    Slot,
    fresh_slot,
    put_check,
    put_loop,
    put_scope,
    put_slot,
    put_wait,
    taken_back,
    wake,
)


def inner_began(state: RunState, path: Path, at: int) -> RunState:
    """The body or the review of the loop at `path` was given to a worker."""
    loop = state.loops.get(path)
    if loop is None or loop.phase not in ("body", "review"):
        return state
    return put_loop(state, path, _timed(loop, began=at))


def inner_ended(
    state: RunState, path: Path, outcome: Outcome, at: int, *, raised: bool = False
) -> RunState:
    """What stands in the loop at `path` (its body or its review) came to its end."""
    loop = state.loops.get(path)
    if loop is None or not loop.is_open or loop.phase not in ("body", "review"):
        return state
    if state.slots[path].status == "queued":
        state = put_slot(state, path, status="ended", outcome=outcome)
    loop = _timed(loop, ended=at)
    if loop.phase == "body":
        return put_loop(state, path, loops.body_ended(loop, outcome, raised=raised))
    return put_loop(state, path, evolve(loop, review=outcome, raised=raised))


def inner_unended(state: RunState, path: Path) -> RunState:
    """What stands in the loop at `path` has not ended after all: it is tried again."""
    loop = state.loops.get(path)
    if loop is None or loop.phase not in ("body", "review"):
        return state
    return put_loop(state, path, _unended(loop))


def _timed(loop: LoopState, **times: int) -> LoopState:
    if loop.phase == "body":
        return evolve(loop, body_span=evolve(loop.body_span, **times))
    return evolve(loop, review_span=evolve(loop.review_span, **times))


def review_begins(state: RunState, path: Path, at: int) -> RunState:
    """The body's work is done for this round; its review takes the place."""
    loop = evolve(state.loops[path], phase="review", review=None, raised=False)
    return put_loop(state, path, evolve(loop, review_span=Span(due=at)))


def reopened(state: RunState) -> RunState:
    """A new session runs loops from their first round, but for one that waits (R228, R250)."""
    waiting = [at for at, slot in state.slots.items() if _waits(state, at, slot)]
    for path, loop in state.loops.items():
        waits = any(at[: len(path)] == path for at in waiting)
        if loop.keeps:
            state = _taken_up(state, path, loop, waits=waits)
            continue
        left = loop.ended is None or loop.ended.status in ("paused", "aborted")
        if waits and left:
            state = put_loop(state, path, evolve(loop, ended=None))
        else:
            state = taken_back(put_loop(state, path, evolve(loop, anew=True)), path)
            state = put_wait(state, path, None)
    return state


def _taken_up(state: RunState, path: Path, loop: LoopState, *, waits: bool) -> RunState:
    """A stage goes on in the round it is in; what was cut short of that round runs again (W80)."""
    paused = loop.ended is not None and loop.ended.status == "paused"
    scope = state.scopes.get(path[:-2])
    if scope is not None and not scope.nodes[path[-2]].is_open:
        # Its work is done, or was sent back: then its rounds begin anew with the next attempt.
        return taken_back(state, path)
    if loop.ended is not None and loop.ended.passed:
        return state
    if waits and (paused or loop.ended is None) and not _cut_short(state, path, loop):
        return put_loop(state, path, evolve(loop, ended=None))
    if paused:
        state = put_loop(state, path, _unended(evolve(loop, ended=None)))
        slot = state.slots.get(path)
        return state if slot is None or slot.status != "ended" else fresh_slot(state, path)
    body_failed = loop.body is not None and not loop.body.passed
    if loop.phase == "review" or loop.ended is not None or body_failed:
        return _once_more(state, path, loop)
    return state


def _cut_short(state: RunState, path: Path, loop: LoopState) -> bool:
    """Whether a review died under somebody's hands and no question of it is open."""
    if loop.phase != "review":
        return False
    inside = [slot.status for at, slot in state.slots.items() if at[: len(path)] == path]
    return "asking" not in inside and "sleeping" not in inside


def _once_more(state: RunState, path: Path, loop: LoopState) -> RunState:
    for at, slot in state.slots.items():
        if at[: len(path)] == path and at != path and slot.status != "ended":
            state = put_slot(state, at, status="ended")
    state = put_loop(state, path, loops.once_more(loop))
    return fresh_slot(state, path) if loop.iteration else state


def _waits(state: RunState, at: Path, slot: Slot) -> bool:
    """Whether it waits for a word (an answer, or what became of a graph's step) or for its time."""
    interrupted = slot.status == "running" and at[:-1] in state.scopes
    return interrupted or slot.status in ("asking", "lost", "sleeping")


def resumed(state: RunState) -> RunState:
    """What paused without a question runs again when somebody resumes.

    That is a body or a review, and the reviewers of a panel that have not passed.
    """
    for path, scope in state.scopes.items():
        if scope.ended is not None and scope.ended.status == "paused":
            nodes = {name: _kept(node) for name, node in scope.nodes.items()}
            state = put_scope(state, path, scopes.with_nodes(scope, nodes, ended=None))
            state = wake(state, path)
    for path, loop in state.loops.items():
        now = loop.review if loop.phase == "review" else loop.body
        slot = state.slots.get(path)
        if not loop.is_open or now is None or now.status != "paused" or slot is None:
            continue
        if slot.status == "ended":
            state = put_loop(state, path, _unended(loop))
            state = wake(fresh_slot(state, path), path)
    return state


def _unended(loop: LoopState) -> LoopState:
    return evolve(loop, review=None) if loop.phase == "review" else evolve(loop, body=None)


def _start(state: RunState, event: Event) -> RunState:
    before = state.loops.get(event.path)
    number = state.slots.get(event.path[:-1], Slot()).number
    keeps = event.fields.get("keeps") is True
    opened = loops.opened(
        before,
        invocation=number,
        at=event.ts,
        keeps=keeps,
        limit=event.fields.get("max") if keeps else None,
    )
    return put_loop(state, event.path, opened)


def _iteration(state: RunState, event: Event) -> RunState:
    path, loop = event.path, state.loops[event.path]
    if loop.keeps and loop.iteration:
        state = _reworked(state, path)
    state = put_loop(state, path, loops.next_round(loop, int(event.fields["iteration"]), event.ts))
    state = put_wait(wake(fresh_slot(state, path), path), path, None)
    return _adopted(state, path) if loop.adopts else state


def _reworked(state: RunState, path: Path) -> RunState:
    """Another build of a stage: it draws from what may be sent back to it, too (W68)."""
    scope, name = state.scopes.get(path[:-2]), path[-2] if len(path) > 1 else ""
    if scope is None:
        return state
    reworked = {**scope.reworked, name: scope.reworked.get(name, 0) + 1}
    return put_scope(state, path[:-2], evolve(scope, reworked=reworked))


def _adopted(state: RunState, path: Path) -> RunState:
    """What the graphs of the body had finished counts once more, in this round alone (R229)."""
    number = state.slots[path].number
    for at, scope in state.scopes.items():
        if at[:-1] == path:
            nodes = {name: _kept(node) for name, node in scope.nodes.items()}
            kept = scopes.with_nodes(scope, nodes, ended=None, invocation=number)
            state = put_scope(state, at, kept)
    return state


def _kept(node: NodeState) -> NodeState:
    done = node.settled
    if done is not None and done.passed and not done.skipped:
        return node
    return evolve(node, status="idle", outcome=None, met=None)


def _condition(state: RunState, event: Event) -> RunState:
    loop = state.loops.get(event.path)
    if loop is None:
        return state
    which = str(event.fields["which"])
    state = _check_over(state, which, event.path)
    if error := event.fields.get("error"):
        return put_loop(state, event.path, evolve(loop, error=error))
    result = ConditionResult.from_json(event.fields["result"])
    return put_loop(state, event.path, loops.checked(loop, which, result))


def _progress(state: RunState, event: Event) -> RunState:
    loop = state.loops.get(event.path)
    if loop is None:
        return state
    state = _check_over(state, AFTER, event.path)
    if error := event.fields.get("error"):
        return put_loop(state, event.path, evolve(loop, error=error))
    seen = Evidence(workspace=event.fields.get("workspace"), signal=event.fields.get("signal"))
    return put_loop(state, event.path, evolve(loop, looked=True, seen=seen))


def _check_over(state: RunState, task: str, path: Path) -> RunState:
    if (task, path) in state.checks:
        return put_check(state, task, path, status="ended")
    return state


def _review(state: RunState, event: Event) -> RunState:
    outcome = Outcome.from_json(event.fields["outcome"])
    return put_loop(state, event.path, loops.reviewed(state.loops[event.path], outcome))


def _wait(state: RunState, event: Event) -> RunState:
    return put_wait(state, event.path, int(event.fields["resumeAt"]))


def _complete(state: RunState, event: Event) -> RunState:
    return _check_over(state, COMPLETE, event.path)


def _end(state: RunState, event: Event) -> RunState:
    path, outcome = event.path, Outcome.from_json(event.fields["outcome"])
    loop = evolve(state.loops[path], ended=outcome)
    state = put_wait(put_loop(state, path, loop), path, None)
    if outcome.status == "paused":
        return state
    slot = state.slots.get(path)
    if slot is not None and slot.status == "queued":
        state = put_slot(state, path, status="ended", outcome=outcome)
    for task in (*CHECKS, AFTER):
        check = state.checks.get((task, path))
        if check is not None and check.status != "ended":
            state = put_check(state, task, path, status="ended")
    return inner_ended(state, path[:-1], outcome, event.ts)


HANDLERS: Final[Mapping[str, Callable[[RunState, Event], RunState]]] = {
    EventKind.LOOP_START: _start,
    EventKind.LOOP_ITERATION: _iteration,
    EventKind.LOOP_CONDITION: _condition,
    EventKind.LOOP_PROGRESS: _progress,
    EventKind.LOOP_REVIEW: _review,
    EventKind.LOOP_WAIT: _wait,
    EventKind.LOOP_COMPLETE: _complete,
    EventKind.LOOP_END: _end,
}
