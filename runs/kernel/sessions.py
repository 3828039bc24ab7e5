"""What a new session takes over from the record it goes on with (runs.md R228-R230)."""

from __future__ import annotations

from runs.kernel import loopfold, scopes, spending
from runs.kernel.evolving import evolve
from runs.kernel.scopes import NodeStatus
from runs.kernel.slots import RunState, Slot, fresh_slot, put_scope, put_slot, taken_back


def reopened(state: RunState, session: int) -> RunState:
    """A new session: what passed stays, what waits stays, the rest may run again (R228)."""
    begun = {path[:-1]: scope.invocation for path, scope in state.scopes.items()}
    begun |= {path[:-1]: loop.invocation for path, loop in state.loops.items()}
    for path, scope in state.scopes.items():
        nodes = dict(scope.nodes)
        for name, node in scope.nodes.items():
            inner = (*path, name)
            slot = state.slots.get(inner)
            if slot is not None and slot.status in ("asking", "sleeping"):
                continue
            if node.settled is not None and node.settled.passed and not node.settled.skipped:
                continue
            if node.is_open and _has_passed(slot):
                # Its work is recorded; only that the node is done was not.
                continue
            if slot is not None and slot.status in ("running", "lost"):
                # Whether it did its work is still to be found out (design I5).
                nodes[name] = evolve(node, status="active", outcome=None)
            elif slot is not None and begun.get(inner) == slot.number and node.status != "idle":
                state = put_slot(state, inner, status="queued", outcome=None)
                status: NodeStatus = "paused" if node.status == "paused" else "active"
                nodes[name] = evolve(node, status=status, outcome=None)
            else:
                state = taken_back(state, inner)
                nodes[name] = evolve(node, status="idle", outcome=None, met=None)
        state = put_scope(state, path, scopes.with_nodes(scope, nodes, ended=None))
    state = loopfold.reopened(state)
    root = state.slots[()]
    composite = any(len(path) == 1 for path in (*state.scopes, *state.loops))
    if not composite and root.status in ("queued", "ended"):
        state = fresh_slot(state, ())
    resumed = state.resumed | answered(state)
    purses = spending.kept(state.purses, state.scopes, state.loops)
    begun_again = evolve(state, session=session, resumed=resumed, purses=purses)
    return evolve(begun_again, cancelled=False, held="", ended=None)


def _has_passed(slot: Slot | None) -> bool:
    if slot is None or slot.status != "ended":
        return False
    return slot.outcome is not None and slot.outcome.passed


def answered(state: RunState) -> frozenset[str]:
    """The questions whose answers are there when somebody starts or resumes the run."""
    requests = state.callbacks.requests.items()
    return frozenset(request_id for request_id, held in requests if held.status == "answered")
