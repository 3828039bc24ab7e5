"""Rows kept beside the record for lists, pictures and constraints; all can be made anew from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from runs.kernel.decide import shape_at
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import GraphShape, LeafShape, Shape
from runs.kernel.outcomes import Outcome
from runs.kernel.state import NodeState, RunState, Slot
from runs.models import Artifact, Run, Step

_ENDED = {
    "pass": Step.Status.PASSED,
    "fail": Step.Status.FAILED,
    "aborted": Step.Status.CANCELLED,
    "exhausted": Step.Status.EXHAUSTED,
    "paused": Step.Status.WAITING,
}
_FINAL = {
    "pass": Run.Status.PASSED,
    "fail": Run.Status.FAILED,
    "aborted": Run.Status.CANCELLED,
    "exhausted": Run.Status.EXHAUSTED,
}
_STEP_FIELDS = [
    "status",
    "attempt",
    "queued_at",
    "started_at",
    "ended_at",
    "summary",
    "outcome",
    "request_id",
    "sent_back_to",
]
_RUN_FIELDS = [
    "last_seq",
    "status",
    "outcome",
    "done_count",
    "waiting_on",
    "held_reason",
    "cancel_requested_at",
    "started_at",
    "ended_at",
    "changed_at",
]
MAX_SUMMARY = 2_000


def create_steps(run: Run, shape: Shape | None) -> None:
    """One idle row per place of the shape, in declaration order."""
    if shape is not None:
        Step.objects.bulk_create(
            Step(run=run, position=position, **facts)
            for position, facts in enumerate(_places(shape))
        )


def _places(shape: Shape) -> Iterator[dict[str, Any]]:
    if isinstance(shape, LeafShape):
        yield {"path": [], "name": shape.label, "kind": shape.kind}
    else:
        yield from _graph_places(shape, (shape.name,))


def _graph_places(graph: GraphShape, path: Path) -> Iterator[dict[str, Any]]:
    for node in graph.nodes:
        inner = (*path, node.name)
        yield {
            "path": list(inner),
            "parent": list(path),
            "name": node.name,
            "kind": node.job.kind if isinstance(node.job, LeafShape) else "graph",
            "depth": len(path) // 2,
            "needs": list(node.needs),
            "desc": node.desc or "",
            "gate": node.gate or "",
        }
        if isinstance(node.job, GraphShape):
            yield from _graph_places(node.job, (*inner, node.job.name))


def project(
    run: Run,
    shape: Shape | None,
    before: RunState,
    after: RunState,
    events: Iterable[Event],
    now: datetime,
) -> None:
    """Bring steps and artifacts up to date with the events of one turn."""
    _artifacts(run, events, now)
    if shape is None:
        return
    changed = _changed(shape, before, after)
    if not changed:
        return
    sent = {
        (*event.path, event.fields["from"]): event.fields["to"]
        for event in events
        if event.kind == EventKind.SEND_BACK and event.fields["accepted"]
    }
    rows = {tuple(row.path): row for row in _rows(run, changed)}
    for path in changed:
        row = rows.get(path)
        if row is not None:
            _refresh(row, shape, after, path, now)
            if path in sent:
                row.sent_back_to = sent[path]
    Step.objects.bulk_create(
        rows.values(),
        update_conflicts=True,
        unique_fields=["run", "path"],
        update_fields=_STEP_FIELDS,
    )


def _rows(run: Run, changed: list[Path]) -> Iterable[Step]:
    steps = Step.objects.filter(run=run)
    if len(changed) <= 50:
        steps = steps.filter(path__in=[list(path) for path in changed])
    return steps


def _changed(shape: Shape, before: RunState, after: RunState) -> list[Path]:
    """The places whose facts differ between the two states."""
    if isinstance(shape, LeafShape):
        return [()] if before.slots.get(()) is not after.slots.get(()) else []
    found: dict[Path, None] = {}
    for path, slot in after.slots.items():
        if path and slot is not before.slots.get(path):
            found[path] = None
    for path, scope in after.scopes.items():
        old = before.scopes.get(path)
        if scope is old:
            continue
        for name, node in scope.nodes.items():
            if old is None or node is not old.nodes.get(name):
                found[(*path, name)] = None
    return list(found)


def _refresh(row: Step, shape: Shape, state: RunState, path: Path, now: datetime) -> None:
    slot = state.slots.get(path)
    if not path:
        row.status = _slot_status(slot) if slot is not None else Step.Status.IDLE
        outcome = slot.outcome if slot is not None else None
        row.started_at = _moment(slot.started_at) if slot is not None else None
    else:
        node = state.scopes[path[:-1]].nodes[path[-1]]
        is_leaf = isinstance(shape_at(shape, path), LeafShape)
        row.status = _node_status(node, slot if is_leaf else None)
        row.attempt = node.attempt
        outcome = node.outcome
        row.queued_at = _moment(node.started_at)
        started = slot.started_at if slot is not None and is_leaf else node.started_at
        row.started_at = _moment(started) if node.status in ("active", "paused", "done") else None
        if node.status == "done" and outcome is not None and outcome.skipped:
            row.started_at = None
    ended = outcome is not None and outcome.status != "paused"
    row.ended_at = (row.ended_at or now) if ended else None
    row.summary = ((outcome.summary or "") if outcome is not None else "")[:MAX_SUMMARY]
    row.outcome = outcome.to_json() if ended and outcome is not None else None
    row.request_id = slot.request_id if slot is not None and slot.request_id else ""
    if not ended:
        row.sent_back_to = ""


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
        case "ended":
            return _outcome_status(slot.outcome)
        case _:
            return Step.Status.QUEUED


def _outcome_status(outcome: Outcome | None) -> str:
    assert outcome is not None
    return Step.Status.SKIPPED if outcome.skipped else _ENDED[outcome.status]


def _artifacts(run: Run, events: Iterable[Event], now: datetime) -> None:
    Artifact.objects.bulk_create(
        Artifact(
            run=run,
            digest=event.fields["digest"],
            name=event.fields["name"],
            media_type=event.fields["mediaType"],
            size=event.fields["byteLength"],
            step_path=list(event.path),
            seq=event.seq,
            created_at=now,
        )
        for event in events
        if event.kind == EventKind.ARTIFACT
    )


def save_run(run: Run, shape: Shape | None, state: RunState, now: datetime) -> None:
    """Copy the state's headline into the run's row."""
    run.status, run.waiting_on = run_status(shape, state)
    run.held_reason = state.held
    run.outcome = None if state.ended is None else state.ended.to_json()
    run.done_count = done_count(shape, state)
    if state.cancelled:
        run.cancel_requested_at = run.cancel_requested_at or now
    else:
        run.cancel_requested_at = None
    if run.started_at is None and run.status != Run.Status.QUEUED:
        run.started_at = now
    run.ended_at = (run.ended_at or now) if run.status in Run.FINAL else None
    run.changed_at = now
    run.save(update_fields=_RUN_FIELDS)


def run_status(shape: Shape | None, state: RunState) -> tuple[str, list[str]]:
    """The run's status and, when it waits, for which kinds of request (design section 4)."""
    if shape is None:
        waits = any(held.is_live for held in state.callbacks.requests.values())
        return (Run.Status.WAITING, ["gate"]) if waits else (Run.Status.RUNNING, [])
    if state.ended is not None:
        return _FINAL.get(state.ended.status, Run.Status.PAUSED), []
    if state.held:
        return Run.Status.PAUSED, []
    busy, kinds = _activity(shape, state)
    if busy:
        began = any(slot.started_at for slot in state.slots.values()) or kinds
        return (Run.Status.RUNNING if began else Run.Status.QUEUED), []
    if kinds:
        return Run.Status.WAITING, sorted(kinds)
    return Run.Status.PAUSED, []


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
                kinds.add("question" if purpose == "reconcile" else "gate")
    return busy, kinds


def _open_slots(shape: Shape, state: RunState) -> Iterator[Slot]:
    if isinstance(shape, LeafShape):
        yield state.slots.get((), Slot())
        return
    graphs = {path[:-1] for path in state.scopes}
    for path, scope in state.scopes.items():
        if scope.ended is not None:
            continue
        for name, node in scope.nodes.items():
            inner = (*path, name)
            if node.status == "checking":
                yield state.checks[inner]
            elif node.status in ("active", "paused") and inner not in graphs:
                yield state.slots[inner]


def done_count(shape: Shape | None, state: RunState) -> int:
    """How many of the steps a person counts have ended."""
    if shape is None:
        return 0
    if isinstance(shape, LeafShape):
        return int(state.slots.get((), Slot()).status == "ended")
    return _graph_done(shape, (shape.name,), state)


def _graph_done(graph: GraphShape, path: Path, state: RunState) -> int:
    scope = state.scopes.get(path)
    if scope is None:
        return 0
    count = 0
    for node in graph.nodes:
        if isinstance(node.job, GraphShape):
            if scope.nodes[node.name].status != "idle":
                count += _graph_done(node.job, (*path, node.name, node.job.name), state)
        elif scope.nodes[node.name].status == "done":
            count += 1
    return count


def _moment(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None
