"""Decide what follows from the facts. Same shape, same state, same time: same answer.

`decide` names the next events of a run; the driver records them, folds them and asks again until
nothing follows. What has to be done outside (start a step, take one back) is read off the change
of state by `commands`.
"""

from __future__ import annotations

from typing import Any, Final

from runs.kernel import (
    action_answers,
    actions,
    asking,
    deadlines,
    looping,
    node_events,
    retries,
    sendbacks,
    spending,
)
from runs.kernel.commands import Command, StartStep, WithdrawStep, commands
from runs.kernel.conditions import evaluate, is_data
from runs.kernel.errors import LoopError
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.evolving import evolve
from runs.kernel.graph import GraphShape, LeafShape, NodeShape, Shape, graph_identity
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.places import Place, place_at, shape_at
from runs.kernel.scopes import NodeState, Scope
from runs.kernel.slots import WHEN, RunState, Slot
from runs.kernel.verdicts import graph_outcome, never_ran, paused_graph

__all__ = [
    "Command",
    "StartStep",
    "WithdrawStep",
    "commands",
    "decide",
    "place_at",
    "shape_at",
]

BUSY: Final = "busy"
WAITING: Final = "waiting"
Progress = str | Outcome


def decide(shape: Shape, state: RunState, now: int, *, attended: bool = True) -> list[Event]:
    """The events that follow now (ms since the epoch); none when the run ends, waits or works.

    An unattended session ends when only questions are left: it records the pause and leaves.
    """
    if not state.started or state.ended is not None:
        return []
    if passed := deadlines.overdue(state, now) or action_answers.decided(state, now):
        return passed
    if (state.held and not state.cancelled) or state.stands_in_line:
        return []
    turn = Decision(state, now, attended=attended)
    progress = turn.root(shape)
    if progress == WAITING and not attended and not turn.events:
        turn.leave(shape)
    if isinstance(progress, Outcome) and not turn.events:
        if state.cancelled and progress.status != "aborted":
            progress = Outcome(status="aborted", summary="cancelled", data=progress.data)
        turn.end(progress)
    return turn.events


class Decision:
    """One pass over the shape; collects events, never changes the state."""

    def __init__(self, state: RunState, now: int, *, attended: bool = True) -> None:
        self.state = state
        self.now = now
        self.attended = attended
        self.events: list[Event] = []
        self.questions_changed = False

    def record(self, kind: str, path: Path, **fields: Any) -> None:
        self.events.append(Event(kind, path, fields, ts=self.now))

    def root(self, shape: Shape) -> Progress:
        return self.job(shape, (), room=True)

    def job(self, shape: Shape, path: Path, *, room: bool, place: Place | None = None) -> Progress:
        """How far the job is whose slot stands at `path`."""
        if isinstance(shape, LeafShape):
            return self.leaf(place or Place(path=path, leaf=shape), room=room)
        number, inner = self.state.slots[path].number, (*path, shape.name)
        if isinstance(shape, GraphShape):
            return self.graph(shape, inner, number, room=room)
        return looping.advance(self, shape, inner, number, room=room)

    def pause_of(self, shape: Shape, path: Path) -> Outcome:
        """What is shown of the job at `path` while it waits for a person."""
        if isinstance(shape, LeafShape):
            return asking.pause(self.state, self.state.slots[path])
        inner = (*path, shape.name)
        if isinstance(shape, GraphShape):
            return paused_graph(shape, self.state.scopes[inner])
        return looping.pause_of(self, shape, inner)

    def leave(self, shape: Shape) -> None:
        """Record the pause of every open graph and loop, innermost first, then of the session."""
        outcome = self.leave_job(shape, ())
        self.end(outcome)

    def end(self, outcome: Outcome) -> None:
        """Record the end of the session, and what it and its record spent (runs.md R255)."""
        state = self.state
        figures: dict[str, Any] = {"usage": state.spent.usage()}
        if state.session > 1:
            figures["totalUsage"] = state.spent_in_all.usage()
        if state.spent_in_all.calls:
            figures["cost"] = state.spent_in_all.cost()
        self.record(EventKind.RUN_END, (), outcome=outcome.to_json(), **figures)

    def leave_job(self, shape: Shape, path: Path) -> Outcome:
        """Record the pause of the job at `path` and of what is in it."""
        if isinstance(shape, LeafShape):
            self._left_asking(path, shape)
            return asking.pause(self.state, self.state.slots[path])
        inner = (*path, shape.name)
        if isinstance(shape, GraphShape):
            return self._leave_graph(shape, inner)
        return looping.leave(self, shape, inner)

    def _leave_graph(self, graph: GraphShape, path: Path) -> Outcome:
        scope = self.state.scopes[path]
        if scope.ended is not None:
            # A panel that found no verdict has paused by itself, and said so.
            return scope.ended
        for name in scope.names(scope.open):
            job = graph.by_name[name].job
            if not isinstance(job, LeafShape):
                self.leave_job(job, (*path, name))
        outcome = paused_graph(graph, scope)
        self.record(EventKind.GRAPH_END, path, outcome=outcome.to_json())
        return outcome

    def _left_asking(self, path: Path, leaf: LeafShape) -> None:
        if fields := asking.paused_end(self.state, path, leaf.label):
            self.record(EventKind.JOB_END, path, **fields)

    # --- one leaf -------------------------------------------------------------------------------

    def leaf(self, place: Place, *, room: bool) -> Progress:
        path, leaf = place.path, place.leaf
        slot = self.state.slots[path]
        match slot.status:
            case "queued" if self.state.cancelled:
                return Outcome(status="aborted", summary="cancelled before it started")
            case "queued" if not leaf.by_worker:
                return self._asks(place)
            case "asking":
                return self._asking(slot, place, room=room)
            case "lost" if self.state.cancelled:
                return Outcome(status="aborted", summary="cancelled after its worker was lost")
            case "lost":
                return self._lost(place, slot)
            case "sleeping" if self.state.cancelled:
                return Outcome(status="aborted", summary="cancelled before its next try")
            case "sleeping" if self.now >= self.state.waits[path]:
                return self._extend([asking.again(path, slot, self.now)])
            case "ended":
                return self._ended(place, slot)
            case _:
                return BUSY

    def _lost(self, place: Place, slot: Slot) -> Progress:
        """A call of a tool that was in hand says by itself how it goes on (I74)."""
        in_hand = actions.in_flight(self.state, place.path)
        if actions.in_doubt(in_hand) is None and (place.can_repeat or in_hand):
            return self._extend([asking.again(place.path, slot, self.now)])
        return self._asks(place)

    def _ended(self, place: Place, slot: Slot) -> Progress:
        """What a step came to; a failure that may pass is followed by a wait (design I12)."""
        assert slot.outcome is not None
        if self.state.cancelled:
            return slot.outcome
        followed = retries.follow(
            self.state.run_id,
            place.path,
            slot.tries,
            slot.outcome,
            place.retry,
            self.state.limits,
            self.now,
        )
        return slot.outcome if followed is None else self._extend([followed])

    def _asks(self, place: Place) -> str:
        """Put a question: one at a time, for each is posted against what was posted before."""
        if self.questions_changed:
            return BUSY
        self.questions_changed = True
        slot = self.state.slots[place.path]
        if slot.status == "lost":
            return self._extend(asking.ask_about_lost(self.state, place, slot, self.now))
        return self._extend(asking.ask(self.state, place, self.now))

    def _asking(self, slot: Slot, place: Place, *, room: bool) -> Progress:
        if self.state.cancelled:
            if place.node is not None:
                return WAITING
            return asking.pause(self.state, slot).evolve(
                status="aborted", summary="cancelled while it waited for a person"
            )
        followed = asking.follow_up(self.state, place, slot, self.now)
        if not followed or (not room and followed[-1].kind == EventKind.STEP_READY):
            return WAITING
        return self._extend(followed)

    def _extend(self, events: list[Event]) -> str:
        self.events += events
        return BUSY

    # --- one graph ------------------------------------------------------------------------------

    def graph(self, graph: GraphShape, path: Path, invocation: int, *, room: bool) -> Progress:
        """How far the graph is. Without `room` its parent has no slot free for new work in it."""
        scope = self.state.scopes.get(path)
        if scope is None or scope.invocation != invocation:
            if self.state.cancelled:
                return Outcome(status="aborted", summary="cancelled before it started")
            return self._open(graph, path)
        return scope.ended or self._advance(graph, path, scope, room=room)

    def _advance(self, graph: GraphShape, path: Path, scope: Scope, *, room: bool) -> Progress:
        before = len(self.events)
        busy, waiting = self._running(graph, path, scope, room=room)
        if len(self.events) > before:
            return BUSY
        stopping = self.state.cancelled or sendbacks.stopped(graph, scope, waiting=waiting)
        if room and not stopping:
            self._start_ready(graph, path, scope, busy)
        if busy or len(self.events) > before:
            return BUSY
        if self.state.cancelled:
            return self._close(graph, path, scope)
        if not (waiting and graph.pause_policy == "stop"):
            if self.questions_changed:
                return BUSY
            self.events += sendbacks.handle(self.state, graph, path, scope, self.now)
            if len(self.events) > before:
                self.questions_changed = True
                return BUSY
        if waiting or (not room and not stopping and self._could_start(graph, scope)):
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
        self.record(
            EventKind.GRAPH_START,
            path,
            depth=(len(path) + 1) // 2,
            nodes=[node.name for node in graph.nodes],
            needs={node.name: list(node.needs) for node in graph.nodes if node.needs},
        )
        return BUSY

    def _running(
        self, graph: GraphShape, path: Path, scope: Scope, *, room: bool
    ) -> tuple[int, bool]:
        """How many nodes work, and whether one waits for an answer; records what ended."""
        names = sendbacks.to_look_at(graph, scope, cancelled=self.state.cancelled)
        paused = sum(scope.nodes[name].status == "paused" for name in names)
        working = len(scope.open) - paused
        busy, waiting = len(scope.open) - len(names), False
        for name in names:
            node, state = graph.by_name[name], scope.nodes[name]
            if state.status == "checking":
                busy += self._checking(path, node, state) == BUSY
                continue
            before = len(self.events)
            # What waited goes on only when its graph has a slot for it again (runs.md R116).
            may_work = room and (state.status == "active" or working < graph.slots)
            progress = self._node(graph, path, scope, node, room=may_work)
            if state.status == "paused" and len(self.events) > before:
                working += 1
            busy += progress == BUSY
            waiting = waiting or progress == WAITING
        return busy, waiting

    def _node(
        self, graph: GraphShape, path: Path, scope: Scope, node: NodeShape, *, room: bool
    ) -> Progress:
        inner = (*path, node.name)
        state, slot = scope.nodes[node.name], self.state.slots[inner]
        place = None
        if isinstance(node.job, LeafShape):
            place = Place(path=inner, leaf=node.job, graph=graph, node=node, scope=scope)
        progress = self.job(node.job, inner, room=room, place=place)
        outcome = self.pause_of(node.job, inner) if progress == WAITING else None
        if isinstance(progress, Outcome):
            outcome = progress
        if outcome is None:
            return progress
        if outcome.status != "paused":
            self._done(path, node, state, slot, outcome)
            return progress
        if state.status == "active":
            if not self.attended and isinstance(node.job, LeafShape):
                self._left_asking(inner, node.job)
            self._done(path, node, state, slot, outcome)
        return WAITING

    def _checking(self, path: Path, node: NodeShape, state: NodeState) -> Progress:
        inner = (*path, node.name)
        check = self.state.checks[WHEN, inner]
        if self.state.cancelled and check.status in ("queued", "lost"):
            why = "cancelled before it started"
            self._done(path, node, state, None, Outcome(status="aborted", summary=why))
            return Outcome(status="aborted")
        if check.status == "lost":
            self.record(EventKind.STEP_READY, inner, task=WHEN, number=check.number + 1)
        return BUSY

    def _could_start(self, graph: GraphShape, scope: Scope) -> bool:
        return any(
            sendbacks.is_ready(graph, scope, graph.by_name[name])
            for name in scope.names(scope.ready)
        )

    def _start_ready(self, graph: GraphShape, path: Path, scope: Scope, busy: int) -> None:
        free = graph.slots - busy
        if free <= 0:
            return
        for name in scope.names(scope.ready):
            node = graph.by_name[name]
            if sendbacks.is_ready(graph, scope, node):
                started = self._start(path, scope, node, scope.nodes[name])
                if started is None:
                    return
                free -= started
                if free <= 0:
                    return

    def _start(self, path: Path, scope: Scope, node: NodeShape, state: NodeState) -> int | None:
        """Start, skip or send out the node's check; the slots that takes, None when it failed."""
        inner = (*path, node.name)
        if node.when is not None and state.met is None:
            if not is_data(node.when):
                check = self.state.checks.get((WHEN, inner))
                number = 1 if check is None else check.number + 1
                self.record(EventKind.STEP_READY, inner, task=WHEN, number=number)
                return 1
            try:
                result = evaluate(node.when, sendbacks.needs_of(scope, node))
            except LoopError as error:
                self.record(EventKind.ERROR, inner, message=error.message, code=error.code)
                self._done(path, node, state, None, failing(error))
                return None
            self.record(
                EventKind.CONDITION, inner, label=WHEN, iteration=0, result=result.to_json()
            )
            if not result.met:
                self._skip(path, node, state, result.reason)
                return 0
        elif state.met is False:
            self._skip(path, node, state, state.reason)
            return 0
        self.events.append(node_events.started(path, node, state, self.now))
        return 1

    def _close(self, graph: GraphShape, path: Path, scope: Scope) -> str:
        """Nothing can run any more: name what never ran, then the graph's own outcome."""
        nodes = dict(scope.nodes)
        for node in graph.nodes:
            state = nodes[node.name]
            if state.status == "idle":
                why = never_ran(graph, scope, node, cancelled=self.state.cancelled)
                ended = Outcome(status="aborted", summary=why)
                self.events.append(node_events.done(path, node, state, None, ended, self.now))
                nodes[node.name] = evolve(state, status="done", outcome=ended)
        outcome = graph_outcome(graph, nodes, cancelled=self.state.cancelled)
        self.record(EventKind.GRAPH_END, path, outcome=outcome.to_json())
        return BUSY

    def _done(
        self, path: Path, node: NodeShape, state: NodeState, slot: Slot | None, outcome: Outcome
    ) -> None:
        mark = (self.state.scopes[path].invocation, state.attempt)
        spent = spending.at(self.state.purses, (*path, node.name), mark)
        self.events.append(node_events.done(path, node, state, slot, outcome, self.now, spent))

    def _skip(self, path: Path, node: NodeShape, state: NodeState, reason: str) -> None:
        self.events.append(node_events.skipped(path, node, state, reason, self.now))
