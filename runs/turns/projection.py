"""Rows kept beside the record for lists, pictures and constraints; all can be made anew from it.

A row is a function of the state and of the events since the row last changed, so that a turn
need not read it, and a rebuild from all events gives the same row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from runs.fields import Ready, stored
from runs.kernel.decide import shape_at
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import GraphShape, LeafShape, LoopShape, Shape
from runs.kernel.loops import LoopState
from runs.kernel.moments import moment
from runs.kernel.outcomes import Outcome
from runs.kernel.places import trail
from runs.kernel.slots import REVIEW
from runs.kernel.state import NodeState, RunState, Slot
from runs.models import Step

ENDED: Final = {
    "pass": Step.Status.PASSED,
    "fail": Step.Status.FAILED,
    "aborted": Step.Status.CANCELLED,
    "exhausted": Step.Status.EXHAUSTED,
    "paused": Step.Status.WAITING,
}
SAME_STEP: Final = ("run", "path")
CHANGING: Final = (
    "status",
    "attempt",
    "queued_at",
    "started_at",
    "ended_at",
    "summary",
    "outcome",
    "request_id",
    "sent_back_to",
)
# After one of these, any place may differ.
_WIDE: Final = frozenset(
    {
        EventKind.RUN_START,
        EventKind.RUN_RESUMED,
        EventKind.RUN_END,
        EventKind.SEND_BACK,
        EventKind.GRAPH_START,
    }
)
MAX_SUMMARY: Final = 2_000
Places = Mapping[Path, Mapping[str, Any]]


def places_of(shape: Shape | None) -> Places:
    """What never changes of each step's row, in declaration order."""
    if shape is None:
        return {}
    if isinstance(shape, LeafShape):
        return {(): {"path": [], "name": shape.label, "kind": shape.kind, "position": 0}}
    return {
        tuple(facts["path"]): {**facts, "position": position}
        for position, facts in enumerate(_inside(shape, (), 0))
    }


def _inside(job: Shape, slot: Path, depth: int) -> Iterator[dict[str, Any]]:
    """The rows of what a graph or a loop holds; a leaf holds nothing."""
    if isinstance(job, GraphShape):
        path = (*slot, job.name)
        for node in job.nodes:
            yield {
                **_row(node.job, (*path, node.name), path, node.name, depth),
                "needs": list(node.needs),
                "desc": node.desc or "",
                "gate": node.gate or "",
            }
            yield from _inside(node.job, (*path, node.name), depth + 1)
    elif isinstance(job, LoopShape):
        path = (*slot, job.name)
        yield _row(job.body, path, path, _title(job.body), depth)
        yield from _inside(job.body, path, depth + 1)
        if job.review is not None:
            yield _row(job.review, (*path, REVIEW), path, _title(job.review), depth)
            yield from _inside(job.review, path, depth + 1)


def _row(job: Shape, path: Path, parent: Path, name: str, depth: int) -> dict[str, Any]:
    kind = "graph" if isinstance(job, GraphShape) else job.kind
    facts = {"path": list(path), "parent": list(parent), "name": name, "kind": kind}
    return {**facts, "depth": depth}


def _title(job: Shape) -> str:
    return job.label if isinstance(job, LeafShape) else job.name


def written(places: Places) -> Places:
    """The same, with its JSON written once for all the rows to come."""
    return {
        path: {name: Ready(stored(v)) if isinstance(v, list) else v for name, v in facts.items()}
        for path, facts in places.items()
    }


def all_rows(
    run_id: UUID, places: Places, begun: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """One row per place of the shape: as it has begun, or idle."""
    rows = {facts["path"]: {"run_id": run_id, **facts} for facts in places.values()}
    for row in begun:
        rows[row["path"]].update(row)
    return list(rows.values())


def changed_rows(
    run_id: UUID,
    shape: Shape,
    places: Places,
    before: RunState,
    after: RunState,
    events: Iterable[Event],
) -> list[dict[str, Any]]:
    """The rows of the steps that the events of one turn may have changed."""
    changed = _changed(shape, before, after, events)
    if not changed:
        return []
    return list(step_rows(run_id, shape, places, changed, after, marks_of(events)))


def _changed(
    shape: Shape, before: RunState, after: RunState, events: Iterable[Event]
) -> list[Path]:
    """The places whose facts differ between the two states."""
    if isinstance(shape, LeafShape):
        same = before.slots.get(()) is after.slots.get(()) and before.ended is after.ended
        return [] if same else [()]
    touched: Iterable[Path]
    if any(event.kind in _WIDE for event in events):
        touched = [(*path, name) for path in after.scopes for name in _names(path, before, after)]
        touched += after.loops
    else:
        touched = dict.fromkeys(path for event in events for path in _touched(event))
    found: dict[Path, None] = {}
    for path in touched:
        if _differs(path, before, after):
            found[path] = None
            if path in after.loops:
                found[*path, REVIEW] = None
    return list(found)


def _names(path: Path, before: RunState, after: RunState) -> Iterable[str]:
    """The nodes of the graph at `path`, and of the other one that stood there before it."""
    nodes, old = after.scopes[path].nodes, before.scopes.get(path)
    return nodes if old is None or old.nodes is nodes else {**old.nodes, **nodes}


def _touched(event: Event) -> Iterator[Path]:
    path = event.path
    if event.kind == EventKind.NODE:
        path = (*path, event.fields["node"])
    # What happens inside a node may wake those around it, and what ends may end a round.
    while path:
        yield path
        path = path[:-1]


def _differs(path: Path, before: RunState, after: RunState) -> bool:
    if after.slots.get(path) is not before.slots.get(path):
        return True
    if after.loops.get(path) is not before.loops.get(path):
        return True
    scope, old = after.scopes.get(path[:-1]), before.scopes.get(path[:-1])
    if scope is old or scope is None:
        return False
    return scope.nodes.get(path[-1]) is not (None if old is None else old.nodes.get(path[-1]))


@dataclass(slots=True)
class Marks:
    """What rows show of events and the state does not keep: when a step ended, and where to."""

    ended: dict[Path, int] = field(default_factory=dict)
    sent: dict[Path, str] = field(default_factory=dict)

    def clear(self, path: Path) -> None:
        self.ended.pop(path, None)
        self.sent.pop(path, None)


def marks_of(events: Iterable[Event]) -> Marks:
    """The marks that are left after these events."""
    marks = Marks()
    for event in events:
        match event.kind:
            case EventKind.NODE:
                path = (*event.path, event.fields["node"])
                marks.clear(path)
                if event.fields["phase"] != "start":
                    _mark_end(marks, path, event)
            case EventKind.SEND_BACK if event.fields["accepted"]:
                for name in event.fields["rerun"]:
                    marks.clear((*event.path, name))
                marks.sent[*event.path, event.fields["from"]] = event.fields["to"]
            case EventKind.STEP_READY | EventKind.CONDITION:
                marks.sent.pop(event.path, None)
            case EventKind.GRAPH_START:
                for name in event.fields["nodes"]:
                    marks.clear((*event.path, name))
            case _:
                _mark_run(marks, event)
    return marks


def _mark_run(marks: Marks, event: Event) -> None:
    if event.kind == EventKind.RUN_START:
        marks.sent.clear()
    elif event.kind in (EventKind.JOB_END, EventKind.RUN_END) and not event.path:
        _mark_end(marks, (), event)


def _mark_end(marks: Marks, path: Path, event: Event) -> None:
    if event.fields["outcome"]["status"] != "paused":
        marks.ended[path] = event.ts


def step_rows(
    run_id: UUID,
    shape: Shape,
    places: Places,
    paths: Iterable[Path],
    state: RunState,
    marks: Marks,
) -> Iterator[dict[str, Any]]:
    """The rows of these places as the state has them."""
    for path in paths:
        facts = places.get(path)
        if facts is not None:
            yield {"run_id": run_id, **facts, **_facts(shape, path, state, marks)}


def _facts(shape: Shape, path: Path, state: RunState, marks: Marks) -> dict[str, Any]:
    slot = state.slots.get(path)
    if path in state.loops:
        return _loop_facts(shape, path, state, in_review=False)
    if path and path[-1] == REVIEW and path[:-1] in state.loops:
        return _loop_facts(shape, path[:-1], state, in_review=True)
    if not path:
        facts = _root_facts(slot or Slot(), state)
    else:
        scope = state.scopes.get(path[:-1])
        node = NodeState() if scope is None else scope.nodes.get(path[-1], NodeState())
        is_leaf = isinstance(shape_at(shape, path, state.loops), LeafShape)
        facts = _node_facts(node, slot if is_leaf else None)
    outcome = facts.pop("result")
    ended = outcome is not None and outcome.status != "paused"
    return {
        **facts,
        "ended_at": _moment(marks.ended.get(path, 0)) if ended else None,
        "summary": plain((outcome.summary if outcome is not None else "") or "", MAX_SUMMARY),
        "outcome": outcome.to_json() if ended else None,
        "request_id": plain(slot.request_id if slot is not None else "", 600),
        "sent_back_to": marks.sent.get(path, ""),
    }


def _loop_facts(shape: Shape, path: Path, state: RunState, *, in_review: bool) -> dict[str, Any]:
    """The row of a loop's body or review, as this round has it."""
    loop, slot = state.loops[path], state.slots.get(path, Slot())
    here = in_review == loop.in_review and loop.iteration > 0 and not loop.anew
    span = loop.review_span if in_review else loop.body_span
    outcome = loop.review if in_review else loop.body
    is_leaf = isinstance(_job_in(shape, path, state, in_review=in_review), LeafShape)
    ended = outcome is not None and outcome.status != "paused"
    return {
        "status": _inner_status(loop, slot if here and is_leaf else None, outcome, here=here),
        "attempt": max(1, loop.iteration),
        "queued_at": _moment(span.due),
        "started_at": _moment(span.began or (0 if is_leaf else span.due)),
        "ended_at": _moment(span.ended) if ended else None,
        "summary": plain((outcome.summary if outcome is not None else "") or "", MAX_SUMMARY),
        "outcome": outcome.to_json() if ended and outcome is not None else None,
        "request_id": plain(slot.request_id if here and is_leaf else "", 600),
        "sent_back_to": "",
    }


def _job_in(shape: Shape, path: Path, state: RunState, *, in_review: bool) -> Shape | None:
    """The body or the review of the loop at `path`, whichever it is at."""
    way = trail(shape, path, state.loops)
    owner = way[-1].owner if way else None
    if not isinstance(owner, LoopShape):
        return None
    return owner.review if in_review else owner.body


def _inner_status(
    loop: LoopState, slot: Slot | None, outcome: Outcome | None, *, here: bool
) -> str:
    if outcome is not None:
        return _outcome_status(outcome)
    if not here:
        return Step.Status.IDLE
    if loop.ended is not None and loop.ended.status != "paused":
        return Step.Status.CANCELLED
    return Step.Status.RUNNING if slot is None else _slot_status(slot)


def _root_facts(slot: Slot, state: RunState) -> dict[str, Any]:
    # A run may end before its only step began.
    over = state.ended is not None and slot.status != "ended"
    outcome = state.ended if over else slot.outcome
    status = _outcome_status(state.ended) if over else _slot_status(slot)
    return {"status": status, "started_at": _moment(slot.started_at), "result": outcome}


def _node_facts(node: NodeState, slot: Slot | None) -> dict[str, Any]:
    began = slot.started_at if slot is not None else node.started_at
    skipped = node.outcome is not None and node.outcome.skipped
    if node.status not in ("active", "paused", "done") or skipped:
        began = 0
    return {
        "status": _node_status(node, slot),
        "attempt": node.attempt,
        "queued_at": _moment(node.started_at),
        "started_at": _moment(began),
        "result": node.outcome,
    }


def _node_status(node: NodeState, slot: Slot | None) -> str:
    match node.status:
        case "idle":
            return Step.Status.SENT_BACK if node.attempt > 1 else Step.Status.IDLE
        case "checking":
            return Step.Status.QUEUED
        case "paused":
            return Step.Status.WAITING
        case "active":
            return Step.Status.RUNNING if slot is None else _slot_status(slot)
        case _:
            return _outcome_status(node.outcome)


def _slot_status(slot: Slot) -> str:
    match slot.status:
        case "running":
            return Step.Status.RUNNING
        case "asking":
            return Step.Status.WAITING
        case "sleeping":
            return Step.Status.RETRY_PENDING
        case "ended":
            return _outcome_status(slot.outcome)
        case _:
            return Step.Status.QUEUED


def _outcome_status(outcome: Outcome | None) -> str:
    assert outcome is not None
    return Step.Status.SKIPPED if outcome.skipped else ENDED[outcome.status]


def artifact_rows(run_id: UUID, events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """A row for every artifact that the events name."""
    for event in events:
        if event.kind == EventKind.ARTIFACT:
            yield {
                "run_id": run_id,
                "digest": event.fields["digest"],
                "name": plain(event.fields["name"], 300),
                "media_type": plain(event.fields["mediaType"], 255),
                "size": event.fields["byteLength"],
                "step_path": list(event.path),
                "seq": event.seq,
                "created_at": moment(event.ts),
            }


def plain(text: str, limit: int) -> str:
    """The text as a column takes it: no U+0000, which PostgreSQL refuses, and not too long."""
    return text.replace("\0", "\ufffd")[:limit]


def _moment(ms: int) -> datetime | None:
    return moment(ms) if ms else None
