"""Run again what has run: whole, or from one step, as a new run that names the old (design D20).

Answers count once more where the same question is asked again. From a step, what passed before it
keeps its outcome, and the new run begins in a copy of the old run's folder.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from runs import services
from runs.errors import NothingToRerun, WorkflowUnknown, need_here
from runs.kernel import node_events
from runs.kernel.action_requests import is_about_action
from runs.kernel.callbacks import CallbackState
from runs.kernel.decide import decide
from runs.kernel.events import Event, EventKind
from runs.kernel.graph import GraphShape, graph_identity
from runs.kernel.moments import milliseconds
from runs.kernel.state import RunState
from runs.models import Event as EventRow
from runs.models import Run, Workflow
from runs.record import Turn
from runs.turns import folding

CHANGED: Final = "definition-changed"


def rerun(
    run_id: UUID,
    *,
    actor: str,
    surface: str = "",
    from_step: str | None = None,
    keep_answers: bool = True,
    once: str = "",
) -> Run:
    """Start the run's workflow again with the same parameters; returns the new run.

    `from_step` names a step of the outermost graph; the same `once` by the same actor gives the
    same new run. Raises NothingToRerun for a run that still
    goes on, and for a step that cannot be the first.
    """
    old = Run.objects.get(pk=run_id)
    need_here(old)
    state = folding.state_at(old.pk, old.last_seq)
    _need_over(old, state)
    offer = Workflow.objects.filter(name=old.workflow, listed=True).first()
    if offer is None:
        raise WorkflowUnknown(f"There is no workflow {old.workflow!r} here any more.")
    kept = [] if from_step is None else _kept(old, offer, state, from_step)

    def begin(turn: Turn) -> None:
        if keep_answers:
            _carry_answers(turn, old, state.callbacks)
        if from_step is not None:
            _carry_steps(turn, state, kept)
        # Had its events left meanwhile, what was read of them would be too little.
        need_here(Run.objects.get(pk=run_id))

    facts: dict[str, Any] = {"rerunOf": str(old.pk)}
    if from_step is not None:
        facts |= {"fromStep": from_step, "workspaceOf": str(old.pk)}
    made = services.start_run(
        old.workflow,
        old.params,
        actor=actor,
        surface=surface,
        labels=old.labels,
        conversation=old.conversation,
        dry_run=state.dry_run,
        priority=old.priority,
        idempotency_key=f"rerun:{old.pk}:{once}" if once else "",
        rerun_of=old,
        facts=facts,
        begin=begin,
    )
    if not old.is_final:
        # What was held has a successor; its questions stay in its record (design D5).
        reason = f"run again as {made.short}"
        services.cancel_run(old.pk, actor=actor, surface=surface, reason=reason)
    return made


def may_rerun(run: Run) -> bool:
    """Whether the run is over, or held because its workflow changed under it."""
    if run.kind != Run.Kind.WORKFLOW or run.archived_at is not None:
        return False
    return run.is_final or run.status == Run.Status.PAUSED


def _need_over(old: Run, state: RunState) -> None:
    if old.kind != Run.Kind.WORKFLOW:
        raise NothingToRerun("A stream of questions is no run of a workflow.")
    if not may_rerun(old):
        raise NothingToRerun(f"Run {old.short} still goes on; cancel it first.")


def _kept(old: Run, offer: Workflow, state: RunState, from_step: str) -> list[str]:
    """The steps whose outcomes are taken over, in an order in which they may have run."""
    assert old.definition_id is not None
    assert offer.definition_id is not None
    shape, now = folding.shape_of(old.definition_id), folding.shape_of(offer.definition_id)
    if not isinstance(shape, GraphShape) or from_step not in shape.by_name:
        raise NothingToRerun(f"There is no step {from_step!r} in the outermost graph.")
    if not isinstance(now, GraphShape) or graph_identity(shape) != graph_identity(now):
        raise NothingToRerun("The steps of this workflow changed; run it again as a whole.")
    scope = state.scopes.get((shape.name,))
    if scope is None:
        raise NothingToRerun("The old run had not begun; run it again as a whole.")
    again = {from_step, *shape.dependents(from_step)}
    kept = []
    for node in shape.topological:
        done = scope.nodes[node.name].settled
        if node.name not in again and done is not None and done.passed and not done.skipped:
            kept.append(node.name)
    missing = [need for need in shape.by_name[from_step].needs if need not in kept]
    if missing and any(not shape.by_name[need].optional for need in missing):
        raise NothingToRerun(f"{from_step!r} needs {missing[0]!r}, which had not passed.")
    return kept


def _carry_answers(turn: Turn, old: Run, callbacks: CallbackState) -> None:
    """Put the old answers into the new record, with the names of those who gave them (design D7).

    A step that asks the same question finds its answer there.
    """
    answered = {
        request_id
        for request_id, held in callbacks.requests.items()
        if held.status == "answered"
        and not held.request.gate_id.startswith("reconcile:")
        # A yes is for one run's own call (interactions.md I77).
        and not is_about_action(held.request.gate_id)
    }
    if not answered:
        return
    kinds = [EventKind.REQUESTED, EventKind.CLAIMED, EventKind.SUBMITTED]
    found: dict[str, dict[str, EventRow]] = {}
    for row in EventRow.objects.filter(run=old, kind__in=kinds).order_by("seq"):
        request = row.payload.get("request") or row.payload
        if request["requestId"] in answered:
            found.setdefault(request["requestId"], {})[row.kind] = row
    for request_id, rows in found.items():
        for kind in kinds:
            row = rows[kind]
            turn.append(kind, (), row.payload, actor=row.actor)
        answer = rows[EventKind.SUBMITTED]
        facts = {
            "requestId": request_id,
            "fromRun": str(old.pk),
            "answeredAt": milliseconds(answer.at),
        }
        turn.append(EventKind.REUSED, (), facts)


def _carry_steps(turn: Turn, old: RunState, kept: list[str]) -> None:
    """Record the steps that are taken over as started and done, with the outcomes they had."""
    assert isinstance(turn.shape, GraphShape)
    graph, path = turn.shape, (turn.shape.name,)
    _append(turn, decide(graph, turn.state, turn.now_ms))
    for name in kept:
        node = graph.by_name[name]
        outcome = old.scopes[path].nodes[name].outcome
        assert outcome is not None
        _append(turn, [node_events.started(path, node, _node(turn, name), turn.now_ms)])
        done = node_events.done(path, node, _node(turn, name), None, outcome, turn.now_ms)
        _append(turn, [done])


def _node(turn: Turn, name: str) -> Any:
    assert isinstance(turn.shape, GraphShape)
    return turn.state.scopes[turn.shape.name,].nodes[name]


def _append(turn: Turn, events: list[Event]) -> None:
    for event in events:
        turn.append(event.kind, event.path, event.fields, actor="system")
