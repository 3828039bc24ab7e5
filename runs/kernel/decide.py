"""Decide what follows from the facts. Same shape, same state, same time: same answer.

`decide` names the next events of a run; the driver records them, folds them and asks again until
nothing follows. What has to be done outside (start a step, take one back) is read off the change
of state by `commands`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from runs.kernel import asking, sendbacks
from runs.kernel.conditions import evaluate, is_data
from runs.kernel.errors import LoopError
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import GraphShape, LeafShape, NodeShape, Shape, graph_identity
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.state import NodeState, RunState, Scope, Slot
from runs.kernel.verdicts import graph_outcome, never_ran, paused_graph

BUSY = "busy"
WAITING = "waiting"
Progress = str | Outcome
NO_USAGE: Mapping[str, int] = {
    "inputTokens": 0,
    "outputTokens": 0,
    "cacheReadInputTokens": 0,
    "cacheCreationInputTokens": 0,
    "unmeasuredCalls": 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StartStep:
    """Give this start of a job (or of a `when` written as code) to a worker."""

    path: Path
    number: int
    task: str = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawStep:
    """Take back a start that no worker has claimed."""

    path: Path
    number: int
    task: str = "job"


Command = StartStep | WithdrawStep


def decide(shape: Shape, state: RunState, now: int, *, attended: bool = True) -> list[Event]:
    """The events that follow now (ms since the epoch); none when the run ends, waits or works.

    An unattended session ends when only questions are left: it records the pause and leaves.
    """
    if not state.started or state.ended is not None:
        return []
    if state.held and not state.cancelled:
        return []
    turn = Decision(state, now, attended=attended)
    progress = turn.root(shape)
    if progress == WAITING and not attended and not turn.events:
        turn.leave(shape)
    if isinstance(progress, Outcome) and not turn.events:
        if state.cancelled and progress.status != "aborted":
            progress = Outcome(status="aborted", summary="cancelled", data=progress.data)
        turn.record(EventKind.RUN_END, (), outcome=progress.to_json(), usage=dict(NO_USAGE))
    return turn.events


def commands(shape: Shape, before: RunState, after: RunState) -> list[Command]:
    """What the change from one state to the other asks of the world."""
    found: list[Command] = []
    if before.slots is not after.slots:
        for path, slot in after.slots.items():
            old = before.slots.get(path)
            if slot is not old and is_worker_leaf(shape, path):
                found += _changed(path, "job", old, slot)
    if before.checks is not after.checks or before.scopes is not after.scopes:
        for path, slot in after.checks.items():
            old = before.checks.get(path)
            if slot is not old:
                found += _changed(path, "when", old, slot)
    return found


def _changed(path: Path, task: str, old: Slot | None, new: Slot) -> list[Command]:
    was = old.number if old is not None and old.status == "queued" else None
    now = new.number if new.status == "queued" else None
    found: list[Command] = []
    if was is not None and was != now and new.status != "running":
        found.append(WithdrawStep(path=path, number=was, task=task))
    if now is not None and was != now:
        found.append(StartStep(path=path, number=now, task=task))
    return found


def shape_at(shape: Shape, path: Path) -> Shape | None:
    """The job whose slot stands at `path`; None when the shape has no such place."""
    while path:
        if not isinstance(shape, GraphShape) or path[0] != shape.name or len(path) < 2:
            return None
        node = shape.by_name.get(path[1])
        if node is None:
            return None
        shape, path = node.job, path[2:]
    return shape


def place_at(shape: Shape, state: RunState, path: Path) -> asking.Place:
    """Where the leaf at `path` stands, for the questions it puts."""
    leaf = shape_at(shape, path)
    assert isinstance(leaf, LeafShape)
    if not path:
        return asking.Place(path=path, leaf=leaf)
    graph = shape_at(shape, path[:-2])
    assert isinstance(graph, GraphShape)
    scope = state.scopes[path[:-1]]
    return asking.Place(
        path=path, leaf=leaf, graph=graph, node=graph.by_name[path[-1]], scope=scope
    )


def is_worker_leaf(shape: Shape, path: Path) -> bool:
    found = shape_at(shape, path)
    return isinstance(found, LeafShape) and found.by_worker


class Decision:
    """One pass over the shape; collects events, never changes the state."""

    def __init__(self, state: RunState, now: int, *, attended: bool = True) -> None:
        self.state = state
        self.now = now
        self.attended = attended
        self.events: list[Event] = []

    def record(self, kind: str, path: Path, **fields: Any) -> None:
        self.events.append(Event(kind, path, fields, ts=self.now))

    def root(self, shape: Shape) -> Progress:
        if isinstance(shape, GraphShape):
            return self.graph(shape, (shape.name,), self.state.slots[()].number)
        return self.leaf(shape, (), None, None, None)

    def leave(self, shape: Shape) -> None:
        """Record the pause of every open graph, innermost first, then of the session."""
        outcome = None
        if isinstance(shape, LeafShape):
            outcome = asking.pause(self.state, self.state.slots[()])
            self.record(EventKind.JOB_END, (), **asking.paused_end(self.state, (), shape.label))
        for path in sorted(self.state.scopes, key=len, reverse=True):
            scope = self.state.scopes[path]
            graph = shape_at(shape, path[:-1])
            if scope.ended is None and isinstance(graph, GraphShape):
                outcome = paused_graph(graph, scope, outcome)
                self.record(EventKind.GRAPH_END, path, outcome=outcome.to_json())
        assert outcome is not None
        self.record(EventKind.RUN_END, (), outcome=outcome.to_json(), usage=dict(NO_USAGE))

    # --- one leaf -------------------------------------------------------------------------------

    def leaf(
        self,
        leaf: LeafShape,
        path: Path,
        graph: GraphShape | None,
        node: NodeShape | None,
        scope: Scope | None,
    ) -> Progress:
        slot = self.state.slots[path]
        place = asking.Place(path=path, leaf=leaf, graph=graph, node=node, scope=scope)
        match slot.status:
            case "queued" if self.state.cancelled:
                return Outcome(status="aborted", summary="cancelled before it started")
            case "queued" if not leaf.by_worker:
                return self._extend(asking.ask(self.state, place, self.now))
            case "asking":
                return self._asking(slot, place)
            case "lost" if self.state.cancelled:
                return Outcome(status="aborted", summary="cancelled after its worker was lost")
            case "lost" if place.can_repeat:
                self.record(EventKind.STEP_READY, path, number=slot.number + 1)
                return BUSY
            case "lost":
                return self._extend(asking.ask_what_became(self.state, place, slot, self.now))
            case "ended":
                assert slot.outcome is not None
                return slot.outcome
            case _:
                return BUSY

    def _asking(self, slot: Slot, place: asking.Place) -> Progress:
        if self.state.cancelled:
            return WAITING
        followed = asking.follow_up(self.state, place, slot, self.now)
        return self._extend(followed) if followed else WAITING

    def _extend(self, events: list[Event]) -> str:
        self.events += events
        return BUSY

    # --- one graph ------------------------------------------------------------------------------

    def graph(self, graph: GraphShape, path: Path, invocation: int) -> Progress:
        scope = self.state.scopes.get(path)
        if scope is None or scope.invocation != invocation:
            if self.state.cancelled:
                return Outcome(status="aborted", summary="cancelled before it started")
            return self._open(graph, path)
        if scope.ended is not None:
            return scope.ended
        before = len(self.events)
        busy, waiting = self._running(graph, path, scope)
        if len(self.events) > before:
            return BUSY
        stopping = self.state.cancelled or sendbacks.stopped(graph, scope, waiting=waiting)
        if not stopping:
            self._start_ready(graph, path, scope, busy)
        if busy or len(self.events) > before:
            return BUSY
        if not self.state.cancelled and not (waiting and graph.pause_policy == "stop"):
            self.events += sendbacks.handle(self.state, graph, path, scope, self.now)
            if len(self.events) > before:
                return BUSY
        if waiting and not self.state.cancelled:
            return WAITING
        return self._close(graph, path, scope)

    def _open(self, graph: GraphShape, path: Path) -> str:
        self.record(
            EventKind.GRAPH_ANCHOR,
            path,
            identity=graph_identity(graph),
            workspace="",
            recordId=asking.record_id(self.state, path),
        )
        names = [node.name for node in graph.nodes]
        depth = (len(path) + 1) // 2
        self.record(EventKind.GRAPH_START, path, depth=depth, nodes=names)
        return BUSY

    def _running(self, graph: GraphShape, path: Path, scope: Scope) -> tuple[int, bool]:
        """How many nodes work, and whether one waits for an answer; records what ended."""
        busy, waiting = 0, False
        for node in graph.nodes:
            state = scope.nodes[node.name]
            match state.status:
                case "active" | "paused":
                    progress = self._node(graph, path, scope, node, state)
                case "checking":
                    progress = self._checking(path, node, state)
                case _:
                    continue
            busy += progress == BUSY
            waiting = waiting or progress == WAITING
        return busy, waiting

    def _node(
        self, graph: GraphShape, path: Path, scope: Scope, node: NodeShape, state: NodeState
    ) -> Progress:
        inner = (*path, node.name)
        slot = self.state.slots[inner]
        if isinstance(node.job, GraphShape):
            progress = self.graph(node.job, (*inner, node.job.name), slot.number)
        else:
            progress = self.leaf(node.job, inner, graph, node, scope)
            if progress == WAITING and state.status == "active":
                outcome = asking.pause(self.state, slot)
                if not self.attended:
                    ended = asking.paused_end(self.state, inner, node.job.label)
                    self.record(EventKind.JOB_END, inner, **ended)
                self._done(path, node, state, slot, outcome)
        if not isinstance(progress, Outcome):
            return progress
        if progress.status == "paused":
            if state.status == "active":
                self._done(path, node, state, slot, progress)
            return WAITING
        self._done(path, node, state, slot, progress)
        return progress

    def _checking(self, path: Path, node: NodeShape, state: NodeState) -> Progress:
        inner = (*path, node.name)
        check = self.state.checks[inner]
        if self.state.cancelled and check.status in ("queued", "lost"):
            self._never(path, node, state, "cancelled before it started")
            return Outcome(status="aborted")
        if check.status == "lost":
            self.record(EventKind.STEP_READY, inner, task="when", number=check.number + 1)
        return BUSY

    def _start_ready(self, graph: GraphShape, path: Path, scope: Scope, busy: int) -> None:
        free = graph.slots - busy
        for node in graph.nodes:
            if free <= 0:
                return
            state = scope.nodes[node.name]
            if state.status == "idle" and sendbacks.is_ready(graph, scope, node):
                free -= self._start(path, scope, node, state)

    def _start(self, path: Path, scope: Scope, node: NodeShape, state: NodeState) -> int:
        """Start, skip or send out the node's check; returns how many slots that takes."""
        inner = (*path, node.name)
        if node.when is not None and state.met is None:
            if not is_data(node.when):
                check = self.state.checks.get(inner)
                number = 1 if check is None else check.number + 1
                self.record(EventKind.STEP_READY, inner, task="when", number=number)
                return 1
            try:
                result = evaluate(node.when, sendbacks.needs_of(scope, node))
            except LoopError as error:
                self.record(EventKind.ERROR, inner, message=error.message, code=error.code)
                self._done(path, node, state, None, failing(error))
                return 0
            self.record(
                EventKind.CONDITION, inner, label="when", iteration=0, result=result.to_json()
            )
            if not result.met:
                self._skip(path, node, state, result.reason)
                return 0
        elif state.met is False:
            self._skip(path, node, state, "its condition was not met")
            return 0
        self.record(EventKind.NODE, path, **self._facts(node, state, "start"))
        return 1

    def _skip(self, path: Path, node: NodeShape, state: NodeState, reason: str) -> None:
        outcome = Outcome(status="pass", summary=f"skipped: {reason}", data={"skipped": True})
        facts = self._facts(node, state, "skip")
        self.record(EventKind.NODE, path, **facts, outcome=outcome.to_json())

    def _never(self, path: Path, node: NodeShape, state: NodeState, why: str) -> None:
        self._done(path, node, state, None, Outcome(status="aborted", summary=why))

    def _done(
        self, path: Path, node: NodeShape, state: NodeState, slot: Slot | None, outcome: Outcome
    ) -> None:
        facts = self._facts(node, state, "done")
        if slot is not None and state.started_at:
            facts["durationMs"] = max(0, self.now - (slot.started_at or state.started_at))
        self.record(EventKind.NODE, path, **facts, outcome=outcome.to_json())

    def _facts(self, node: NodeShape, state: NodeState, phase: str) -> dict[str, Any]:
        facts: dict[str, Any] = {"node": node.name, "phase": phase, "attempt": state.attempt}
        if node.needs:
            facts["needs"] = list(node.needs)
        for key, value in (("desc", node.desc), ("gate", node.gate)):
            if value is not None:
                facts[key] = value
        if phase == "start" and node.timeout_ms is not None:
            facts["timeoutMs"] = node.timeout_ms
        return facts

    def _close(self, graph: GraphShape, path: Path, scope: Scope) -> str:
        """Nothing can run any more: name what never ran, then the graph's own outcome."""
        nodes = dict(scope.nodes)
        for node in graph.nodes:
            state = nodes[node.name]
            if state.status == "idle":
                why = never_ran(graph, scope, node, cancelled=self.state.cancelled)
                self._never(path, node, state, why)
                nodes[node.name] = replace(
                    state, status="done", outcome=Outcome(status="aborted", summary=why)
                )
        outcome = graph_outcome(graph, nodes, cancelled=self.state.cancelled)
        self.record(EventKind.GRAPH_END, path, outcome=outcome.to_json())
        return BUSY
