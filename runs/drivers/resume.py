"""Taking up a record again: what a new session adds before it decides (runs.md section 14).

The kernel says what a new session keeps (`run:start` of a run that has started). What is added
here needs more than the events: this session's shape, its workspace and its callback client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from runs.drivers.errors import RecordDamaged
from runs.drivers.jsonl import Record
from runs.drivers.monitor.answers import ROUTER
from runs.drivers.opening import Opening, StartsOver, Wire, starts
from runs.kernel import asking, deadlines
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind, Path
from runs.kernel.graph import GraphShape, LeafShape, LoopShape, Shape, graph_identity
from runs.kernel.interactions import routers_of
from runs.kernel.jsonable import json_equal
from runs.kernel.slots import RunState, Slot, put_slot
from runs.kernel.state import fold


def name_of(past: Record) -> str:
    """What the record calls its run; every session of it uses the same idempotency keys."""
    for fields in starts(past):
        return str(fields.get("recordId") or fields.get("runId") or "")
    return ""


def run_id_of(past: Record) -> str | None:
    """The run id the record was begun with."""
    return next((str(fields["runId"]) for fields in starts(past) if "runId" in fields), None)


def params_of(past: Record) -> Mapping[str, Any]:
    """The parameters of the last session that had any."""
    found = [fields["params"] for fields in starts(past) if "params" in fields]
    return found[-1] if found and isinstance(found[-1], Mapping) else {}


def folded(past: Record) -> RunState:
    """The state the record left behind, without its questions: those the client knows."""
    with _adding_up():
        return fold(event for event in past.events if event.kind not in CALLBACK_KINDS)


def timed(state: RunState, past: Record) -> RunState:
    """The state with the times of its questions, once the client has said what they are."""
    with _adding_up():
        return deadlines.taken_up(state, past.events)


@contextmanager
def _adding_up() -> Iterator[None]:
    try:
        yield
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


def dropped_questions(opening: Opening) -> list[tuple[str, str]]:
    """Questions of what starts over that nobody needs to answer any more, and what took over."""
    found: list[tuple[str, str]] = []
    for path, slot in opening.state.slots.items():
        held = opening.state.callbacks.requests.get(slot.request_id)
        if slot.status != "asking" or held is None or not held.is_live:
            continue
        over = [one for one in opening.stale if one.holds(path)]
        if over:
            name = path[len(over[0].slot)]
            found.append((slot.request_id, f"the start of {name} over again"))
    return found


def left_claims(shape: Shape, state: RunState) -> list[tuple[str, str]]:
    """Claims of what answered inside the process that is gone, and the tokens that free them."""
    gone = {ROUTER, *_routers(shape)}
    return [
        (request_id, held.claim_token)
        for request_id, held in state.callbacks.requests.items()
        if held.router_id in gone and held.claim_token is not None
    ]


def _routers(shape: Shape) -> frozenset[str]:
    match shape:
        case LeafShape():
            return routers_of(shape)
        case GraphShape():
            return frozenset(name for node in shape.nodes for name in _routers(node.job))
        case LoopShape():
            return _routers(shape.body) | (_routers(shape.review) if shape.review else frozenset())


def asked_anew(opening: Opening) -> list[Event]:
    """Questions this session's client has never heard of are put once more (section 14.2).

    So are those that somebody was shown and put aside: their step shows them again (G132).
    """
    found: list[Event] = []
    known, stale = opening.state.callbacks.requests, opening.stale
    for path, slot in opening.state.slots.items():
        put_aside = slot.ask is not None and slot.ask.get("cancelled")
        if slot.status != "asking" or (slot.request_id in known and not put_aside):
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
