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
from runs.kernel.graph import GraphShape, LeafShape, Shape, graph_identity
from runs.kernel.jsonable import json_equal
from runs.kernel.scopes import Scope
from runs.kernel.slots import RunState, Slot
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


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What is known when a session takes up a record."""

    shape: Shape
    state: RunState
    past: Record
    workspace: str

    @cached_property
    def anchors(self) -> dict[Path, Wire]:
        """The last anchor each graph recorded."""
        return {
            event.path: event.fields
            for event in self.past.events
            if event.kind == EventKind.GRAPH_ANCHOR
        }

    @cached_property
    def graphs(self) -> list[tuple[Path, GraphShape, Scope]]:
        """The graphs that go on where they were, outermost first."""
        return [found for found in self._walk(self.shape, ()) if not isinstance(found, Place)]

    @cached_property
    def stale(self) -> list[Path]:
        """The slots whose graph was another one, or was elsewhere: it starts over (R235-R237)."""
        return [found.path for found in self._walk(self.shape, ()) if isinstance(found, Place)]

    def _walk(self, shape: Shape, at: Path) -> Iterator[tuple[Path, GraphShape, Scope] | Place]:
        if not isinstance(shape, GraphShape):
            return
        path = (*at, shape.name)
        scope = self.state.scopes.get(path)
        if scope is None or scope.invocation != self.state.slots.get(at, Slot()).number:
            if any(other[:-1] == at for other in self.state.scopes):
                yield Place(at)
            return
        if not self._is_same(shape, path):
            yield Place(at)
            return
        yield path, shape, scope
        for node in shape.nodes:
            settled = scope.nodes[node.name].settled
            if settled is None or not settled.passed:
                yield from self._walk(node.job, (*path, node.name))

    def _is_same(self, graph: GraphShape, path: Path) -> bool:
        anchor = self.anchors.get(path, {})
        same_place = anchor.get("workspace") == self.workspace
        return same_place and anchor.get("identity") == graph_identity(graph)

    def is_dropped(self, path: Path) -> bool:
        """Whether what stands at `path` belongs to a graph that starts over."""
        return any(path[: len(at)] == at and len(path) > len(at) for at in self.stale)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a graph starts over."""

    path: Path


def interrupted(opening: Opening) -> list[Event]:
    """Every step that has a start and no end; its rule decides what follows (design I5)."""
    return [
        Event(EventKind.STEP_LOST, path, {"number": slot.number})
        for path, slot in opening.state.slots.items()
        if slot.status == "running"
    ]


def started_over(opening: Opening) -> list[Event]:
    """Graphs that are no longer what the record tells of, and a plain job (R228)."""
    begin = [(at, opening.state.slots.get(at, Slot())) for at in opening.stale]
    root = opening.state.slots[()]
    if isinstance(opening.shape, LeafShape) and root.status == "lost":
        begin.append(((), root))
    return [Event(EventKind.STEP_READY, at, {"number": slot.number + 1}) for at, slot in begin]


def asked_anew(opening: Opening) -> list[Event]:
    """Questions this session's client has never heard of are put once more (section 14.2)."""
    found: list[Event] = []
    known = opening.state.callbacks.requests
    for path, slot in opening.state.slots.items():
        if slot.status != "asking" or slot.request_id in known or opening.is_dropped(path):
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
    for path, graph, scope in opening.graphs:
        anchor = {
            "identity": graph_identity(graph),
            "workspace": opening.workspace,
            "recordId": asking.record_id(opening.state, path),
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
