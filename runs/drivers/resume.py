"""Taking up a record again: what a new session adds before it decides (runs.md section 14).

The kernel says what a new session keeps (`run:start` of a run that has started). What is added
here needs more than the events: this session's shape, its workspace and its callback client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from runs.drivers.errors import RecordDamaged
from runs.drivers.jsonl import Record
from runs.kernel import asking
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind, Path
from runs.kernel.graph import (
    GraphShape,
    LeafShape,
    LoopShape,
    Shape,
    graph_identity,
    shape_identity,
)
from runs.kernel.jsonable import json_equal
from runs.kernel.scopes import Scope
from runs.kernel.slots import RunState, Slot, put_slot
from runs.kernel.state import fold

Wire = Mapping[str, Any]


def name_of(past: Record) -> str:
    """What the record calls its run; every session of it uses the same idempotency keys."""
    for fields in _starts(past):
        return str(fields.get("recordId") or fields.get("runId") or "")
    return ""


def run_id_of(past: Record) -> str | None:
    """The run id the record was begun with."""
    return next((str(fields["runId"]) for fields in _starts(past) if "runId" in fields), None)


def params_of(past: Record) -> Mapping[str, Any]:
    """The parameters of the last session that had any."""
    found = [fields["params"] for fields in _starts(past) if "params" in fields]
    return found[-1] if found and isinstance(found[-1], Mapping) else {}


def _starts(past: Record) -> Iterator[Wire]:
    return (event.fields for event in past.events if event.kind == EventKind.RUN_START)


def folded(past: Record) -> RunState:
    """The state the record left behind, without its questions: those the client knows."""
    events = (event for event in past.events if event.kind not in CALLBACK_KINDS)
    try:
        return fold(events)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        text = "the record does not add up; give the run another record, or start it anew."
        raise RecordDamaged(text) from error


def known_of(past: Record, history: Sequence[Wire]) -> int:
    """How many events of the client's history the record tells of already."""
    told = [event for event in past.events if event.kind in CALLBACK_KINDS]
    if not told:
        return len(history)
    last = _comparable(told[-1].callback_wire())
    for place in range(len(history), 0, -1):
        if json_equal(_comparable(history[place - 1]), last):
            return place
    return len(history)


def _comparable(wire: Wire) -> dict[str, Any]:
    """A callback event without its claim's token, which a record leaves out."""
    return {key: value for key, value in wire.items() if key != "claimToken"}


@dataclass(frozen=True, slots=True)
class GoesOn:
    """A graph that goes on where it was."""

    path: Path
    graph: GraphShape
    scope: Scope


@dataclass(frozen=True, slots=True)
class StartsOver:
    """A graph or loop that is another one now, or elsewhere; `slot` is the place it is in.

    With `body` it is the body or review of a loop that runs from its first round anyway: then
    only what the graph had finished must not be taken over.
    """

    slot: Path
    body: GraphShape | None = None

    def holds(self, path: Path) -> bool:
        """Whether what stands at `path` is gone with it."""
        return len(path) > len(self.slot) and path[: len(self.slot)] == self.slot


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What is known when a session takes up a record."""

    shape: Shape
    state: RunState
    past: Record
    workspace: str
    params: Mapping[str, Any]

    @cached_property
    def anchors(self) -> dict[Path, Wire]:
        """The last anchor each graph recorded."""
        return {
            event.path: event.fields
            for event in self.past.events
            if event.kind == EventKind.GRAPH_ANCHOR
        }

    @cached_property
    def found(self) -> list[GoesOn | StartsOver]:
        """Every graph and loop that had begun, outermost first (R235-R237)."""
        return list(self._walk(self.shape, ()))

    @property
    def stale(self) -> list[StartsOver]:
        """Those that start over."""
        return [one for one in self.found if isinstance(one, StartsOver)]

    def _walk(self, shape: Shape, at: Path) -> Iterator[GoesOn | StartsOver]:
        if isinstance(shape, LeafShape):
            return
        path = (*at, shape.name)
        begun = self.state.scopes if isinstance(shape, GraphShape) else self.state.loops
        inner = begun.get(path)
        if inner is None or inner.invocation != self.state.slots.get(at, Slot()).number:
            if any(other[:-1] == at for other in (*self.state.scopes, *self.state.loops)):
                yield StartsOver(at)
        elif isinstance(shape, GraphShape):
            yield from self._graph(shape, at)
        else:
            yield from self._loop(shape, at)

    def _graph(self, graph: GraphShape, at: Path) -> Iterator[GoesOn | StartsOver]:
        path = (*at, graph.name)
        if not self._is_same(graph, path):
            yield StartsOver(at)
            return
        scope = self.state.scopes[path]
        yield GoesOn(path, graph, scope)
        for node in graph.nodes:
            settled = scope.nodes[node.name].settled
            if settled is None or not settled.passed:
                yield from self._walk(node.job, (*path, node.name))

    def _loop(self, loop: LoopShape, at: Path) -> Iterator[GoesOn | StartsOver]:
        path = (*at, loop.name)
        state = self.state.loops[path]
        if not state.anew:
            if self._is_the_same_run():
                inside = loop.review if state.in_review and loop.review else loop.body
                yield from self._walk(inside, path)
            else:
                yield StartsOver(at)
            return
        for inner in (loop.body, loop.review):
            if not isinstance(inner, GraphShape) or (*path, inner.name) not in self.state.scopes:
                continue
            if self._is_same(inner, (*path, inner.name)):
                yield GoesOn((*path, inner.name), inner, self.state.scopes[*path, inner.name])
            else:
                yield StartsOver(path, inner)

    def _is_same(self, graph: GraphShape, path: Path) -> bool:
        anchor = self.anchors.get(path, {})
        same_place = anchor.get("workspace") == self.workspace
        return same_place and anchor.get("identity") == graph_identity(graph)

    def _is_the_same_run(self) -> bool:
        """Whether a loop may go on in the round it reached (R250)."""
        last = list(_starts(self.past))[-1]
        same = last.get("shape") == shape_identity(self.shape)
        same_place = last.get("workspace") == self.workspace
        return same and same_place and json_equal(last.get("params", {}), self.params)


def interrupted(opening: Opening) -> list[Event]:
    """Every step and check that has a start and no end; its rule decides what follows (I5)."""
    state = opening.state
    steps = [
        Event(EventKind.STEP_LOST, path, {"number": slot.number})
        for path, slot in state.slots.items()
        if slot.status == "running"
    ]
    checks = [
        Event(EventKind.STEP_LOST, path, {"number": slot.number, "task": task})
        for (task, path), slot in state.checks.items()
        if slot.status in ("queued", "running")
    ]
    return steps + checks


def started_over(opening: Opening) -> list[Event]:
    """Graphs and loops that are no longer what the record tells of, and a plain job (R228)."""
    found: list[Event] = []
    for one in opening.stale:
        number = opening.state.slots.get(one.slot, Slot()).number
        if one.body is None:
            found.append(Event(EventKind.STEP_READY, one.slot, {"number": number + 1}))
        else:
            found += _opened_anew(opening, one.body, one.slot, number)
    root = opening.state.slots[()]
    if isinstance(opening.shape, LeafShape):
        was_composite = any(len(at) == 1 for at in (*opening.state.scopes, *opening.state.loops))
        if root.status in ("lost", "ended") or (was_composite and root.status != "asking"):
            found.append(Event(EventKind.STEP_READY, (), {"number": root.number + 1}))
    return found


def _opened_anew(opening: Opening, graph: GraphShape, at: Path, number: int) -> list[Event]:
    path = (*at, graph.name)
    anchor = {
        "identity": graph_identity(graph),
        "workspace": opening.workspace,
        "recordId": asking.record_id(put_slot(opening.state, at, number=number + 1), path),
    }
    start = {
        "depth": (len(path) + 1) // 2,
        "nodes": [node.name for node in graph.nodes],
        "needs": {node.name: list(node.needs) for node in graph.nodes if node.needs},
    }
    return [
        Event(EventKind.GRAPH_ANCHOR, path, anchor),
        Event(EventKind.GRAPH_START, path, start),
    ]


def asked_anew(opening: Opening) -> list[Event]:
    """Questions this session's client has never heard of are put once more (section 14.2)."""
    found: list[Event] = []
    known, stale = opening.state.callbacks.requests, opening.stale
    for path, slot in opening.state.slots.items():
        if slot.status != "asking" or slot.request_id in known:
            continue
        if any(one.holds(path) for one in stale):
            continue
        if slot.ask is not None and slot.ask.get("purpose") == "reconcile":
            found.append(Event(EventKind.STEP_LOST, path, {"number": slot.number}))
        else:
            found.append(Event(EventKind.STEP_READY, path, {"number": slot.number + 1}))
    return found


def told_again(opening: Opening) -> list[Event]:
    """What is taken over: each graph by its anchor, each finished step with its figures (R210)."""
    ends = _ends(opening.past)
    found: list[Event] = []
    for one in opening.found:
        if isinstance(one, StartsOver):
            continue
        path, graph, scope = one.path, one.graph, one.scope
        anchor = {
            "identity": graph_identity(graph),
            "workspace": opening.workspace,
            "recordId": opening.anchors[path]["recordId"],
        }
        found.append(Event(EventKind.GRAPH_ANCHOR, path, anchor))
        for node in graph.nodes:
            settled = scope.nodes[node.name].settled
            done = ends.get((path, node.name))
            if done is None or settled is None or not settled.passed or settled.skipped:
                continue
            told = {key: done[key] for key in ("needs", "desc", "gate") if key in done}
            start = {"node": node.name, "phase": "start", "attempt": 1, **told, "reused": True}
            found.append(Event(EventKind.NODE, path, start))
            found.append(Event(EventKind.NODE, path, {**done, "reused": True}))
    return found


def _ends(past: Record) -> dict[tuple[Path, str], Wire]:
    return {
        (event.path, str(event.fields["node"])): event.fields
        for event in past.events
        if event.kind == EventKind.NODE and event.fields.get("phase") == "done"
    }


Stage = Callable[[Opening], list[Event]]
STAGES: Final[Sequence[Stage]] = (interrupted, started_over, asked_anew, told_again)
