"""The state of a run is a fold of its events, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from runs.kernel import (
    actions,
    agentfold,
    answered,
    callbacks,
    deadlines,
    interactions,
    loopfold,
    questions,
    quorums,
    scopes,
    sessions,
    spending,
    standing,
)
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind, Path
from runs.kernel.evolving import evolve
from runs.kernel.outcomes import Outcome
from runs.kernel.retries import MAX_WAIT_MS, Limits
from runs.kernel.scopes import NodeState, NodeStatus, Scope
from runs.kernel.slots import (
    JOB,
    REVIEW,
    WHEN,
    RunState,
    Slot,
    fresh_slot,
    put,
    put_check,
    put_node,
    put_scope,
    put_slot,
    put_wait,
    wake,
)

__all__ = ["NodeState", "NodeStatus", "RunState", "Scope", "Slot", "fold", "is_folded", "reduce"]


def reduce(state: RunState, event: Event) -> RunState:
    """Fold one event. Unknown kinds change nothing (runs.md R204)."""
    handler = _HANDLERS.get(event.kind)
    if handler is not None:
        state = handler(state, event)
    elif event.kind in CALLBACK_KINDS:
        state = _callback(state, event)
    elif event.kind == spending.KIND:
        state = _paid(state, event)
    return evolve(state, seq=event.seq) if event.seq else state


def fold(events: Iterable[Event], state: RunState | None = None) -> RunState:
    """The state after the events, from the given state or from nothing."""
    state = state or RunState()
    for event in events:
        state = reduce(state, event)
    return state


def is_folded(kind: str) -> bool:
    """Whether events of this kind change the state of a run: a step may not emit them itself."""
    return kind in _HANDLERS or kind in CALLBACK_KINDS


def _run_start(state: RunState, event: Event) -> RunState:
    session = int(event.fields.get("session", 1))
    if state.started:
        params = event.fields.get("params", state.params)
        again = sessions.reopened(state, session)
        # What began as a dry run never turns into a real one on its way.
        again = evolve(again, dry_run=again.dry_run or event.fields.get("dryRun") is True)
        again = standing.left(again)
        return evolve(again, params=params, limits=_limits(event), spent=spending.NOTHING)
    begun = evolve(
        state,
        run_id=str(event.fields.get("runId") or event.fields.get("recordId") or ""),
        session=session,
        params=event.fields.get("params") or {},
        shared=event.fields.get("state") or {},
        limits=_limits(event),
        workspace_of=str(event.fields.get("workspaceOf", "")),
        dry_run=event.fields.get("dryRun") is True,
        resumed=sessions.answered(state),
    )
    return put(begun, JOB, (), Slot())


def _limits(event: Event) -> Limits:
    given = event.fields.get("limits") or {}
    return Limits(
        on_limit=given.get("onLimit", "auto"), max_wait_ms=given.get("maxWaitMs", MAX_WAIT_MS)
    )


def _paid(state: RunState, event: Event) -> RunState:
    """An engine was called: the session, the record and every place around the call have paid."""
    purses = state.purses
    for length in range(1, len(event.path) + 1):
        path = event.path[:length]
        mark = spending.mark_at(state.scopes, state.loops, path)
        if mark is not None:
            purses = spending.paid(purses, path, mark, event.fields)
    return evolve(
        state,
        spent=state.spent.plus(event.fields),
        spent_in_all=state.spent_in_all.plus(event.fields),
        purses=purses,
        answers=answered.plus(state.answers, event, state.session),
    )


def _graph_start(state: RunState, event: Event) -> RunState:
    opened = scopes.opened(
        event.fields["nodes"],
        event.fields.get("needs", {}),
        invocation=state.slots.get(event.path[:-1], Slot()).number,
        at=event.ts,
    )
    if event.path in state.scopes:
        state = _forget_inside(state, event.path)
        kept = answered.without(state.answers, event.path, state.session)
        state = evolve(state, answers=kept)
    return put_scope(state, event.path, opened)


def _forget_inside(state: RunState, path: Path) -> RunState:
    """Nothing of an earlier invocation of this graph works or waits any longer (runs.md R235)."""
    depth = len(path)
    for at, slot in state.slots.items():
        if slot.status != "ended" and at[:depth] == path:
            state = put(state, JOB, at, Slot(number=slot.number, status="ended"))
    return state


def _graph_node(state: RunState, event: Event) -> RunState:
    scope = state.scopes.get(event.path)
    # What a session takes over it only tells again (runs.md R210).
    if scope is None or event.fields.get("reused"):
        return state
    name = event.fields["node"]
    match event.fields["phase"]:
        case "start":
            state = wake(fresh_slot(state, (*event.path, name)), event.path)
            return put_node(
                state, event.path, name, status="active", outcome=None, started_at=event.ts
            )
        case "skip":
            outcome = Outcome.from_json(event.fields["outcome"])
            return put_node(state, event.path, name, status="done", outcome=outcome)
        case _:
            outcome = Outcome.from_json(event.fields["outcome"])
            return _node_ended(state, event.path, name, scope.nodes[name], outcome)


def _node_ended(
    state: RunState, path: Path, name: str, node: NodeState, outcome: Outcome
) -> RunState:
    if outcome.status == "paused":
        return put_node(state, path, name, status="paused", outcome=outcome)
    inner = (*path, name)
    if node.status == "checking":
        state = put_check(state, WHEN, inner, status="ended")
    else:
        slot = state.slots.get(inner)
        # What was lost when its run was cancelled stays lost: a later session has to ask about it.
        if slot is not None and slot.status not in ("ended", "lost"):
            state = put_slot(state, inner, status="ended", outcome=outcome)
    # A review is answered by a run to the end; one that was cut short has not answered it (R8).
    review = node.last_review if outcome.status == "aborted" else None
    return put_node(state, path, name, status="done", outcome=outcome, last_review=review)


def _send_back(state: RunState, event: Event) -> RunState:
    scope = state.scopes[event.path]
    sender, target = event.fields["from"], event.fields["to"]
    if not event.fields["accepted"]:
        refused = scope.refused | {(sender, scope.nodes[sender].attempt)}
        closed = scope.closed or bool(event.fields.get("final"))
        return put_scope(state, event.path, evolve(scope, refused=refused, closed=closed))
    rerun = frozenset(event.fields["rerun"])
    state = _give_up_waiting(state, event.path, rerun)
    review = Outcome.from_json(event.fields["review"])
    return put_scope(state, event.path, scopes.sent_back(scope, target, rerun, review))


def _give_up_waiting(state: RunState, path: Path, rerun: frozenset[str]) -> RunState:
    """Nothing under a node that runs again waits for an answer any longer."""
    depth = len(path)
    for at, slot in state.slots.items():
        if slot.status == "asking" and at[:depth] == path and at[depth] in rerun:
            state = put(state, JOB, at, Slot(number=slot.number, status="ended"))
    for at in state.waits:
        if at[:depth] == path and at[depth] in rerun:
            state = put_wait(state, at, None)
    return state


def _graph_end(state: RunState, event: Event) -> RunState:
    outcome = Outcome.from_json(event.fields["outcome"])
    state = put_scope(state, event.path, evolve(state.scopes[event.path], ended=outcome))
    outer = event.path[:-1]
    if outcome.status == "paused":
        return state
    return loopfold.inner_ended(state, outer, outcome, event.ts)


def _step_ready(state: RunState, event: Event) -> RunState:
    path, name = event.path[:-1], event.path[-1] if event.path else ""
    task = event.fields.get("task", JOB)
    if task not in (JOB, REVIEW):
        check = Slot(number=int(event.fields["number"]))
        state = wake(put(state, task, event.path, check), event.path)
        return put_node(state, path, name, status="checking") if task == WHEN else state
    if task == REVIEW:
        state = loopfold.review_begins(state, event.path, event.ts)
    before = state.slots.get(event.path)
    tries = before.tries if before is not None and task == JOB else 0
    state = wake(fresh_slot(state, event.path, tries=tries), event.path)
    state = put_wait(state, event.path, None)
    scope = state.scopes.get(path)
    if scope is not None and name in scope.nodes:
        return put_node(state, path, name, status="active")
    return state


def _step_lost(state: RunState, event: Event) -> RunState:
    task = event.fields.get("task", JOB)
    state = agentfold.given_up(state, event.path)
    if task != JOB:
        return put_check(state, task, event.path, status="lost")
    return put_slot(state, event.path, status="lost")


def _job_start(state: RunState, event: Event) -> RunState:
    task = event.fields.get("task", JOB)
    if task != JOB:
        return put_check(state, task, event.path, status="running", started_at=event.ts)
    state = put_slot(state, event.path, status="running", started_at=event.ts)
    return loopfold.inner_began(state, event.path, event.ts)


def _job_end(state: RunState, event: Event) -> RunState:
    outcome = Outcome.from_json(event.fields["outcome"])
    asked = event.fields.get("asked")
    if changes := event.fields.get("state"):
        shared = {**state.shared, **changes.get("set", {})}
        for name in changes.get("removed", ()):
            shared.pop(name, None)
        state = evolve(state, shared=shared)
    if outcome.status == "paused" and asked:
        return put_slot(
            state, event.path, status="asking", outcome=outcome, request_id=asked["requestId"]
        )
    state = put_slot(state, event.path, status="ended", outcome=outcome)
    raised = bool(event.fields.get("raised"))
    return loopfold.inner_ended(state, event.path, outcome, event.ts, raised=raised)


def _sleeps(state: RunState, event: Event) -> RunState:
    """A failure that may pass: the same attempt is tried again at its time."""
    slot, path = state.slots[event.path], event.path
    tries = int(event.fields.get("attempt", slot.tries))
    until = event.fields.get("nextAttemptAt", event.fields.get("resumeAt"))
    state = put_slot(state, path, status="sleeping", tries=tries)
    return put_wait(loopfold.inner_unended(state, path), path, until)


def _retried_now(state: RunState, event: Event) -> RunState:
    """A person does not want to wait."""
    return put_wait(state, event.path, event.ts) if event.path in state.waits else state


def _limit_pause(state: RunState, event: Event) -> RunState:
    error = event.fields["error"]
    paused = Outcome(status="paused", summary=event.fields["reason"], error=error)
    state = put_slot(loopfold.inner_unended(state, event.path), event.path, outcome=paused)
    return loopfold.inner_ended(state, event.path, paused, event.ts)


def _condition(state: RunState, event: Event) -> RunState:
    """The verdict of a node's `when`; any other check at the same place changes nothing."""
    path, name = event.path[:-1], event.path[-1] if event.path else ""
    scope = state.scopes.get(path)
    if event.fields.get("label") != WHEN or scope is None or name not in scope.nodes:
        return state
    status = scope.nodes[name].status
    if status not in ("idle", "checking"):
        return state
    if status == "checking":
        state = put_check(state, WHEN, event.path, status="ended")
    result = event.fields["result"]
    met, reason = bool(result["met"]), str(result.get("reason", ""))
    return put_node(state, path, name, status="idle", met=met, reason=reason)


def _routed(state: RunState, event: Event) -> RunState:
    """A question is bound to the step that asked it."""
    state = quorums.routed(deadlines.routed(state, event), event)
    purpose = event.fields.get("purpose")
    if purpose == actions.ACTION:
        state = actions.routed(state, event)
    if purpose not in _BINDING or event.fields.get("reported"):
        return state
    return put_slot(
        state,
        event.path,
        status="asking",
        request_id=event.fields["requestId"],
        ask=event.fields,
    )


def _callback(state: RunState, event: Event) -> RunState:
    state = evolve(state, callbacks=callbacks.fold(state.callbacks, event.callback_wire()))
    state = deadlines.called_back(state, event)
    if event.kind != EventKind.REQUESTED:
        return state
    asked = event.fields["request"]["requestId"]
    state = quorums.asked_anew(state, asked)
    if not state.withdrawn:
        return state
    # Asked anew, a question that was withdrawn can be answered again.
    left = {key: reason for key, reason in state.withdrawn.items() if key != asked}
    return evolve(state, withdrawn=left)


def _withdrawn(state: RunState, event: Event) -> RunState:
    state = deadlines.stopped(state, event.fields["requestId"])
    gone = {**state.withdrawn, event.fields["requestId"]: event.fields.get("reason", "")}
    return evolve(state, withdrawn=gone)


def _resumed(state: RunState, _event: Event) -> RunState:
    for path, scope in state.scopes.items():
        for name in scope.names(scope.open):
            slot = state.slots.get((*path, name))
            # A step that paused without a question runs again when somebody resumes the run.
            if scope.nodes[name].status == "paused" and slot is not None and slot.status == "ended":
                state = put_node(state, path, name, status="idle", outcome=None)
    state = loopfold.resumed(state)
    state = standing.left(state)
    return evolve(state, held="", resumed=state.resumed | sessions.answered(state))


# What a step waits for; any other question of a run holds nothing up.
_BINDING: Final = frozenset(
    {
        "approval",
        "reconcile",
        questions.PURPOSE,
        actions.ACTION,
        actions.DOUBT,
        *interactions.PURPOSES,
    }
)
_HANDLERS: Final[Mapping[str, Callable[[RunState, Event], RunState]]] = {
    EventKind.RUN_START: _run_start,
    EventKind.RUN_END: lambda state, event: evolve(
        state, ended=Outcome.from_json(event.fields["outcome"])
    ),
    EventKind.RUN_CANCEL: lambda state, _event: evolve(state, cancelled=True),
    EventKind.RUN_HELD: lambda state, event: evolve(state, held=event.fields["reason"]),
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
    EventKind.RETRY_PENDING: _sleeps,
    EventKind.RETRY_NOW: _retried_now,
    EventKind.LIMIT_WAIT: _sleeps,
    EventKind.LIMIT_PAUSE: _limit_pause,
    EventKind.ROUTED: _routed,
    EventKind.WITHDRAWN: _withdrawn,
    **actions.HANDLERS,
    **agentfold.HANDLERS,
    **deadlines.HANDLERS,
    **quorums.HANDLERS,
    **standing.HANDLERS,
    **loopfold.HANDLERS,
}
