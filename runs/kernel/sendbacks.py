"""Which nodes are looked at, which may start, and what a request to do work again leads to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runs.kernel.errors import LoopError
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import GraphShape, NodeShape
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.scopes import Scope
from runs.kernel.slots import RunState


def needs_of(scope: Scope, node: NodeShape) -> dict[str, Outcome]:
    """The outcomes of the node's needs that have one (runs.md R7)."""
    found = {}
    for name in node.needs:
        outcome = scope.nodes[name].settled
        if outcome is not None:
            found[name] = outcome
    return found


def to_look_at(graph: GraphShape, scope: Scope, *, cancelled: bool) -> list[str]:
    """The open nodes but for those that a worker has in hand, in declaration order."""
    if cancelled or scope.watched is None:
        return list(scope.names(scope.open))
    known = scope.nodes
    more = (name for name in graph.unhanded if name in known and known[name].is_open)
    return list(scope.names(tuple(sorted({*scope.watched, *(scope.plan.place[n] for n in more)}))))


def is_ready(graph: GraphShape, scope: Scope, node: NodeShape) -> bool:
    """All needs have ended and each required one passed (runs.md R114, R115)."""
    for name in node.needs:
        outcome = scope.nodes[name].settled
        if outcome is None:
            return False
        if not outcome.passed and not graph.by_name[name].optional:
            return False
    return True


def stopped(graph: GraphShape, scope: Scope, *, waiting: bool) -> bool:
    """No further node may start (runs.md R119; R120 under the pause policy "stop")."""
    if waiting and graph.pause_policy == "stop":
        return True
    if not graph.stop_on_error:
        return False
    return any(
        not graph.by_name[name].optional and not is_routable(graph, scope, graph.by_name[name])
        for name in scope.names(scope.failed)
    )


def is_routable(graph: GraphShape, scope: Scope, node: NodeShape) -> bool:
    """The node asks for a send-back that may still be accepted."""
    target = _target(graph, scope, node)
    return target is not None and target in node.accepts_kickback_to


def _target(graph: GraphShape, scope: Scope, node: NodeShape) -> str | None:
    """The target of a request nobody has answered yet; None when there is nothing to decide."""
    state = scope.nodes[node.name]
    outcome = state.settled
    if outcome is None or outcome.revision is None or not outcome.revision.target:
        return None
    target = outcome.revision.target
    if target not in node.accepts_kickback_to:
        return target
    if scope.closed or (node.name, state.attempt) in scope.refused:
        return None
    return target if graph.limit_for(target) > 0 else None


def handle(state: RunState, graph: GraphShape, path: Path, scope: Scope, now: int) -> list[Event]:
    """Answer the first open request in topological order (runs.md R129-R140)."""
    for name in sorted(scope.names(scope.asking_back), key=graph.rank.__getitem__):
        node = graph.by_name[name]
        target = _target(graph, scope, node)
        if target is None:
            continue
        if target not in node.accepts_kickback_to:
            return _undeclared(path, node, scope, target, now)
        return _decided(state, graph, path, scope, node, target, now)
    return []


def _undeclared(path: Path, node: NodeShape, scope: Scope, target: str, now: int) -> list[Event]:
    """A target the sender does not list is the sender's own failure (runs.md R131)."""
    state = scope.nodes[node.name]
    assert state.outcome is not None
    text = f"{node.name} sent work back to {target}, which it does not list in accepts_kickback_to."
    outcome = failing(LoopError("CONFIG", text)).evolve(data=state.outcome.data)
    sent: dict[str, Any] = {
        "from": node.name,
        "to": target,
        "reason": text,
        "accepted": False,
        "count": scope.accepted.get(target, 0) + 1,
    }
    done = {"node": node.name, "phase": "done", "attempt": state.attempt}
    return [
        Event(EventKind.SEND_BACK, path, sent, ts=now),
        Event(EventKind.NODE, path, {**done, "outcome": outcome.to_json()}, ts=now),
    ]


def _decided(
    state: RunState,
    graph: GraphShape,
    path: Path,
    scope: Scope,
    node: NodeShape,
    target: str,
    now: int,
) -> list[Event]:
    """One round rule for every form: after round r another may follow iff r <= N (R134-R137)."""
    outcome = scope.nodes[node.name].outcome
    assert outcome is not None
    assert outcome.revision is not None
    limit = graph.limit_for(target)
    shared = isinstance(graph.max_kickbacks, int)
    # A stage's own reviews and what is sent back to it draw from the same rounds (W68).
    count = scope.accepted.get(target, 0) + scope.reworked.get(target, 0) + 1
    spent = scope.accepted_count if shared else count - 1
    accepted = spent < limit
    facts: dict[str, Any] = {
        "from": node.name,
        "to": target,
        "reason": outcome.revision.reason,
        "accepted": accepted,
        "count": count,
        "limit": limit,
    }
    if not accepted:
        return [Event(EventKind.SEND_BACK, path, {**facts, "final": shared}, ts=now)]
    rerun = [target, *graph.dependents(target)]
    review = outcome.evolve(
        status="fail",
        summary=f"{node.name} sent this back: {outcome.revision.reason}",
        revision=replace(outcome.revision, source=node.name),
    )
    facts |= {"rerun": rerun, "review": review.to_json()}
    sent = Event(EventKind.SEND_BACK, path, facts, ts=now)
    return [*_supersede_waiting(state, path, rerun, now), sent]


def _supersede_waiting(state: RunState, path: Path, rerun: list[str], now: int) -> list[Event]:
    """A send-back into a waiting branch takes its question away (design D6).

    Nothing replaces it yet, so it is superseded by its own next asking.
    """
    depth = len(path)
    again: dict[str, Path] = {}
    kept: set[str] = set()
    for at, slot in state.slots.items():
        if slot.status == "asking":
            if at[:depth] == path and at[depth] in rerun:
                again[slot.request_id] = at
            else:
                kept.add(slot.request_id)
    events = []
    for request_id, at in again.items():
        held = state.callbacks.requests.get(request_id)
        # A question that another step shares is still waited for (gates.md G109).
        if held is not None and held.is_live and request_id not in kept:
            fields = {"requestId": request_id, "supersededBy": request_id}
            events.append(Event(EventKind.SUPERSEDED, at, fields, ts=now))
    return events
