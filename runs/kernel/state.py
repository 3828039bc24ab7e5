"""The state of a run is a fold of its events, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

from runs.kernel import callbacks
from runs.kernel.callbacks import CallbackState
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind, Path
from runs.kernel.outcomes import Outcome

SlotStatus = Literal["queued", "running", "asking", "lost", "ended"]
NodeStatus = Literal["idle", "checking", "active", "paused", "done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The place of one job: which start it is at and how far it came.

    `number` counts the starts at this path over the whole run, so a message, a lease and a result
    can each name the one start they belong to.
    """

    number: int = 1
    status: SlotStatus = "queued"
    started_at: int = 0
    outcome: Outcome | None = None
    request_id: str = ""
    ask: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """One node of one graph invocation; `attempt` counts from 1 in it."""

    status: NodeStatus = "idle"
    attempt: int = 1
    outcome: Outcome | None = None
    started_at: int = 0
    met: bool | None = None
    last_review: Outcome | None = None

    @property
    def settled(self) -> Outcome | None:
        """The outcome of a node that has ended for good in this attempt."""
        return self.outcome if self.status == "done" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One invocation of a graph."""

    invocation: int
    started_at: int
    nodes: Mapping[str, NodeState]
    accepted: Mapping[str, int] = field(default_factory=dict)
    refused: frozenset[tuple[str, int]] = frozenset()
    closed: bool = False
    ended: Outcome | None = None

    @property
    def accepted_count(self) -> int:
        return sum(self.accepted.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Everything a decision may look at."""

    run_id: str = ""
    seq: int = 0
    session: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)
    scopes: Mapping[Path, Scope] = field(default_factory=dict)
    slots: Mapping[Path, Slot] = field(default_factory=dict)
    checks: Mapping[Path, Slot] = field(default_factory=dict)
    callbacks: CallbackState = field(default_factory=callbacks.empty)
    resumed: frozenset[str] = frozenset()
    withdrawn: Mapping[str, str] = field(default_factory=dict)
    held: str = ""
    cancelled: bool = False
    ended: Outcome | None = None

    @property
    def started(self) -> bool:
        return self.session > 0


def reduce(state: RunState, event: Event) -> RunState:
    """Fold one event. Unknown kinds change nothing (runs.md R204)."""
    handler = _HANDLERS.get(event.kind)
    if handler is not None:
        state = handler(state, event)
    elif event.kind in CALLBACK_KINDS:
        state = replace(state, callbacks=callbacks.fold(state.callbacks, event.callback_wire()))
    return replace(state, seq=event.seq) if event.seq else state


def fold(events: Iterable[Event], state: RunState | None = None) -> RunState:
    """The state after the events, from the given state or from nothing."""
    state = state or RunState()
    for event in events:
        state = reduce(state, event)
    return state


def _run_start(state: RunState, event: Event) -> RunState:
    session = int(event.fields.get("session", 1))
    if state.started:
        return _reopen(state, session)
    return replace(
        state,
        run_id=str(event.fields.get("runId", "")),
        session=session,
        params=event.fields.get("params") or {},
        shared=event.fields.get("state") or {},
        slots={(): Slot()},
    )


def _reopen(state: RunState, session: int) -> RunState:
    """A new session: what passed stays, what waits stays, the rest may run again (R228)."""
    scopes = {}
    slots = dict(state.slots)
    graphs = {path[:-1]: scope.invocation for path, scope in state.scopes.items()}
    for path, scope in state.scopes.items():
        nodes = dict(scope.nodes)
        for name, node in scope.nodes.items():
            inner = (*path, name)
            slot = slots.get(inner)
            if slot is not None and slot.status == "asking":
                continue
            if node.settled is not None and node.settled.passed and not node.settled.skipped:
                continue
            if slot is not None and graphs.get(inner) == slot.number:
                slots[inner] = replace(slot, status="queued", outcome=None)
                nodes[name] = replace(node, status="active", outcome=None)
            else:
                nodes[name] = replace(node, status="idle", outcome=None, met=None)
        scopes[path] = replace(scope, nodes=nodes, ended=None)
    root = slots[()]
    if not any(len(path) == 1 for path in state.scopes) and root.status == "ended":
        slots[()] = Slot(number=root.number + 1)
    return replace(
        state, session=session, scopes=scopes, slots=slots, cancelled=False, held="", ended=None
    )


def _graph_start(state: RunState, event: Event) -> RunState:
    parent = state.slots.get(event.path[:-1], Slot())
    names = cast("list[str]", event.fields["nodes"])
    scope = Scope(
        invocation=parent.number,
        started_at=event.ts,
        nodes={name: NodeState() for name in names},
    )
    return replace(state, scopes={**state.scopes, event.path: scope})


def _node(state: RunState, path: Path, name: str, **changes: Any) -> RunState:
    scope = state.scopes[path]
    nodes = {**scope.nodes, name: replace(scope.nodes[name], **changes)}
    return replace(state, scopes={**state.scopes, path: replace(scope, nodes=nodes)})


def _slot(state: RunState, path: Path, **changes: Any) -> RunState:
    slot = replace(state.slots.get(path, Slot()), **changes)
    return replace(state, slots={**state.slots, path: slot})


def _fresh_slot(state: RunState, path: Path) -> RunState:
    before = state.slots.get(path)
    slot = Slot(number=1 if before is None else before.number + 1)
    return replace(state, slots={**state.slots, path: slot})


def _graph_node(state: RunState, event: Event) -> RunState:
    name = cast("str", event.fields["node"])
    if event.path not in state.scopes:
        return state
    node = state.scopes[event.path].nodes[name]
    match event.fields["phase"]:
        case "start":
            state = _fresh_slot(state, (*event.path, name))
            return _node(
                state, event.path, name, status="active", outcome=None, started_at=event.ts
            )
        case "skip":
            outcome = Outcome.from_json(event.fields["outcome"])
            return _node(state, event.path, name, status="done", outcome=outcome)
        case _:
            outcome = Outcome.from_json(event.fields["outcome"])
            waits = outcome.status == "paused"
            keep = waits or outcome.status == "aborted"
            inner = state.slots.get((*event.path, name))
            if not waits and inner is not None and inner.status != "ended":
                state = _slot(state, (*event.path, name), status="ended", outcome=outcome)
            return _node(
                state,
                event.path,
                name,
                status="paused" if waits else "done",
                outcome=outcome,
                last_review=node.last_review if keep else None,
            )


def _send_back(state: RunState, event: Event) -> RunState:
    scope = state.scopes[event.path]
    sender, target = event.fields["from"], event.fields["to"]
    if not event.fields["accepted"]:
        refused = scope.refused | {(sender, scope.nodes[sender].attempt)}
        closed = scope.closed or bool(event.fields.get("final"))
        changed = replace(scope, refused=refused, closed=closed)
        return replace(state, scopes={**state.scopes, event.path: changed})
    nodes = dict(scope.nodes)
    for name in event.fields["rerun"]:
        node = nodes[name]
        nodes[name] = NodeState(attempt=node.attempt + 1, last_review=node.last_review)
    nodes[target] = replace(nodes[target], last_review=Outcome.from_json(event.fields["review"]))
    accepted = {**scope.accepted, target: scope.accepted.get(target, 0) + 1}
    changed = replace(scope, nodes=nodes, accepted=accepted)
    return replace(state, scopes={**state.scopes, event.path: changed})


def _graph_end(state: RunState, event: Event) -> RunState:
    scope = replace(state.scopes[event.path], ended=Outcome.from_json(event.fields["outcome"]))
    return replace(state, scopes={**state.scopes, event.path: scope})


def _step_ready(state: RunState, event: Event) -> RunState:
    if event.fields.get("task") == "when":
        slot = Slot(number=int(event.fields["number"]))
        state = replace(state, checks={**state.checks, event.path: slot})
        return _node(state, event.path[:-1], event.path[-1], status="checking")
    state = _fresh_slot(state, event.path)
    scope = state.scopes.get(event.path[:-1])
    if scope is not None and event.path[-1] in scope.nodes:
        return _node(state, event.path[:-1], event.path[-1], status="active")
    return state


def _step_lost(state: RunState, event: Event) -> RunState:
    if event.fields.get("task") == "when":
        check = replace(state.checks[event.path], status="lost")
        return replace(state, checks={**state.checks, event.path: check})
    return _slot(state, event.path, status="lost")


def _job_start(state: RunState, event: Event) -> RunState:
    if event.fields.get("task") == "when":
        check = replace(state.checks[event.path], status="running", started_at=event.ts)
        return replace(state, checks={**state.checks, event.path: check})
    return _slot(state, event.path, status="running", started_at=event.ts)


def _job_end(state: RunState, event: Event) -> RunState:
    outcome = Outcome.from_json(event.fields["outcome"])
    asked = event.fields.get("asked")
    changes = event.fields.get("state")
    if changes:
        shared = {**state.shared, **changes.get("set", {})}
        for name in changes.get("removed", ()):
            shared.pop(name, None)
        state = replace(state, shared=shared)
    if outcome.status == "paused" and asked:
        return _slot(state, event.path, status="asking", request_id=asked["requestId"])
    return _slot(state, event.path, status="ended", outcome=outcome)


def _condition(state: RunState, event: Event) -> RunState:
    scope = state.scopes.get(event.path[:-1]) if event.path else None
    if event.fields.get("label") != "when" or scope is None:
        return state
    met = bool(event.fields["result"]["met"])
    return _node(state, event.path[:-1], event.path[-1], status="idle", met=met)


def _routed(state: RunState, event: Event) -> RunState:
    """A question is bound to the step that asked it."""
    if event.fields.get("purpose") not in ("approval", "reconcile"):
        return state
    return _slot(
        state,
        event.path,
        status="asking",
        request_id=event.fields["requestId"],
        ask=event.fields,
    )


def _withdrawn(state: RunState, event: Event) -> RunState:
    gone = {**state.withdrawn, event.fields["requestId"]: event.fields.get("reason", "")}
    return replace(state, withdrawn=gone)


def _resumed(state: RunState, event: Event) -> RunState:
    answered = frozenset(
        request_id
        for request_id, held in state.callbacks.requests.items()
        if held.status == "answered"
    )
    scopes = {
        path: replace(scope, nodes=_let_go(state, path, scope)) for path, scope in state.scopes.items()
    }
    return replace(state, scopes=scopes, held="", resumed=state.resumed | answered)


def _let_go(state: RunState, path: Path, scope: Scope) -> dict[str, NodeState]:
    """A step that paused without a question runs again when somebody resumes the run."""
    nodes = dict(scope.nodes)
    for name, node in scope.nodes.items():
        slot = state.slots.get((*path, name))
        if node.status == "paused" and slot is not None and slot.status == "ended":
            nodes[name] = replace(node, status="idle", outcome=None)
    return nodes


_HANDLERS: Final[Mapping[str, Callable[[RunState, Event], RunState]]] = {
    EventKind.RUN_START: _run_start,
    EventKind.RUN_END: lambda state, event: replace(
        state, ended=Outcome.from_json(event.fields["outcome"])
    ),
    EventKind.RUN_CANCEL: lambda state, event: replace(state, cancelled=True),
    EventKind.RUN_HELD: lambda state, event: replace(state, held=event.fields["reason"]),
    EventKind.RUN_RESUMED: _resumed,
    EventKind.GRAPH_START: _graph_start,
    EventKind.NODE: _graph_node,
    EventKind.SEND_BACK: _send_back,
    EventKind.GRAPH_END: _graph_end,
    EventKind.STEP_READY: _step_ready,
    EventKind.STEP_LOST: _step_lost,
    EventKind.JOB_START: _job_start,
    EventKind.JOB_END: _job_end,
    EventKind.CONDITION: _condition,
    EventKind.ROUTED: _routed,
    EventKind.WITHDRAWN: _withdrawn,
}
