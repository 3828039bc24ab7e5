"""How a step asks, waits and carries on: the events of a question the kernel handles itself."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from runs.kernel import actions, callbacks, clocks, interactions, questions, quorums, sendbacks
from runs.kernel.action_requests import OPERATORS, doubt_request
from runs.kernel.approvals import (
    approval_outcome,
    approval_request,
    dead_outcome,
    default_input,
    expired_outcome,
    overridden_outcome,
    reconcile_outcome,
    reconcile_request,
    waiting_outcome,
)
from runs.kernel.callbacks import CallbackState, Held
from runs.kernel.errors import LoopError
from runs.kernel.events import Event, EventKind, Path, joined
from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import JsonValueError
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.places import Place, rounds_at
from runs.kernel.slots import RunState, Slot

_RECORDS: Final = uuid.UUID("8a3bd0c6-5d7e-5c1f-9d53-1f2f6a1c0b77")


def record_id(state: RunState, path: Path) -> str:
    """The anchor of one graph invocation: the same for the same place of the same record."""
    slot = state.slots.get(path[:-1], Slot())
    return str(uuid.uuid5(_RECORDS, f"{state.run_id}/{joined(path)}/{slot.number}"))


def ask(state: RunState, place: Place, now: int) -> list[Event]:
    """Put an approval's question, or use the answer its history already holds (G97-G99)."""
    shape = place.leaf.ask
    assert shape is not None
    started = _job_start(place, now)
    if shape.has_input:
        subject = shape.input
    elif place.scope is not None and place.node is not None:
        needs = sendbacks.needs_of(place.scope, place.node)
        subject = default_input(needs, None, in_graph=True)
    else:
        loop = state.loops.get(place.path)
        last = None if loop is None else loop.body if loop.in_review else loop.before
        subject = default_input({}, last, in_graph=False)
    try:
        request = approval_request(
            place.leaf.label,
            shape,
            subject=subject,
            attempt=place.attempt,
            rounds=rounds_at(state, place.path),
            params=state.params,
        )
    except (JsonValueError, ValueError) as error:
        outcome = failing(LoopError("VALIDATION", str(error), phase="body"))
        return [started, *_failed(place, outcome, None, now)]
    return [started, *put(state, place, request, routing_of(place, state, request), now)]


def _failed(
    place: Place, outcome: Outcome, request: CallbackRequest | None, now: int
) -> list[Event]:
    assert outcome.error is not None
    told = {"message": outcome.error["message"], "code": outcome.error["code"]}
    return [
        Event(EventKind.ERROR, place.path, told, ts=now),
        _job_end(place.path, place.leaf.label, outcome, request, now),
    ]


def routing_of(place: Place, state: RunState, request: CallbackRequest) -> dict[str, Any]:
    """Beside the question: who is asked, until when, and what a yes and a no lead to."""
    shape = place.leaf.ask
    routing: dict[str, Any] = {"purpose": "approval", "question": request.decision_text}
    if shape is not None:
        routing |= dict(shape.routing)
        if shape.target is not None:
            routing["target"] = shape.target
    if place.graph is None or place.node is None or place.scope is None:
        return routing
    routing["attempt"] = place.attempt
    routing["onYes"] = list(place.graph.followers[place.node.name])
    if shape is not None and shape.target is not None:
        spent = place.scope.accepted.get(shape.target, 0)
        if isinstance(place.graph.max_kickbacks, int):
            spent = place.scope.accepted_count
        declared = shape.target in place.node.accepts_kickback_to
        limit = place.graph.limit_for(shape.target) if declared else 0
        routing["sendBacksLeft"] = max(0, limit - spent)
    return routing


def ask_approvals(
    state: RunState,
    place: Place,
    asked: Iterable[tuple[CallbackRequest, Mapping[str, Any]]],
    now: int,
) -> list[Event]:
    """Ask whether calls may run, all of one turn together, in their order (I39)."""
    attempt = {} if place.node is None else {"attempt": place.attempt}
    return [
        event
        for request, routing in asked
        for event in approval_events(state, place.path, request, {**routing, **attempt}, now)
    ]


def approval_events(
    state: RunState, path: Path, request: CallbackRequest, routing: Mapping[str, Any], now: int
) -> list[Event]:
    """The events that ask for one approval; a client hears of it once (I36.9, I94)."""
    posted = _put(state, path, request, {**routing}, now)
    if all(event.kind != EventKind.REQUESTED for event in posted):
        return posted
    assert isinstance(request.input, Mapping)
    told = {
        "requestId": request.request_id,
        "key": routing["key"],
        "tool": routing["tool"],
        "risk": request.input["risk"],
        "summary": routing["summary"],
        "expiresAt": posted[-1].fields.get("expiresAt"),
    }
    return [*posted, Event(EventKind.APPROVAL_REQUESTED, path, told, ts=now)]


def ask_questions(
    state: RunState, place: Place, request: CallbackRequest, routing: Mapping[str, Any], now: int
) -> list[Event]:
    """Put the questions of a step; one too many for the run fails it (design D11)."""
    if questions.too_many(state.callbacks, request):
        text = f"a run asks at most {questions.MAX_PER_RUN} questions."
        return _failed(place, failing(LoopError("VALIDATION", text, phase="body")), None, now)
    attempt = {} if place.node is None else {"attempt": place.attempt}
    return put(state, place, request, {**routing, **attempt}, now)


def put(
    state: RunState, place: Place, request: CallbackRequest, routing: dict[str, Any], now: int
) -> list[Event]:
    """The events that post `request` and bind it to the step; an old answer needs no asking."""
    return _put(state, place.path, request, routing, now)


def _put(
    state: RunState, path: Path, request: CallbackRequest, routing: dict[str, Any], now: int
) -> list[Event]:
    posted = [
        Event(str(wire["kind"]), path, _fields(wire), ts=now)
        for wire in callbacks.post(state.callbacks, request)
    ]
    bound = {"requestId": request.request_id, **clocks.timed(routing, now)}
    return [*posted, Event(EventKind.ROUTED, path, bound, ts=now)]


def _fields(wire: Any) -> dict[str, Any]:
    return {key: value for key, value in wire.items() if key != "kind"}


def ask_about_lost(state: RunState, place: Place, slot: Slot, now: int) -> list[Event]:
    """What a person is asked of a step that was lost: of its call in doubt, or of the step."""
    doubt = actions.in_doubt(actions.in_flight(state, place.path))
    if doubt is not None:
        return ask_whether_it_happened(state, place, doubt, now)
    return ask_what_became(state, place, slot, now)


def ask_what_became(state: RunState, place: Place, slot: Slot, now: int) -> list[Event]:
    """An interrupted step that may not simply repeat is put to a person, once (design I5)."""
    request = reconcile_request(place.path, slot.number, apart=place.works_apart)
    routing = {"purpose": "reconcile", "question": request.decision_text}
    return put(state, place, request, routing, now)


def ask_whether_it_happened(
    state: RunState, place: Place, action: actions.Action, now: int
) -> list[Event]:
    """A call whose end nobody knows is put to the operators; it is never sent again in silence."""
    request = doubt_request(action)
    told = {"key": action.key, "tool": action.tool, "requestId": request.request_id}
    routing = {
        "purpose": actions.DOUBT,
        "kind": "question",
        "question": request.decision_text,
        "key": action.key,
        "tool": action.tool,
        "audience": dict(OPERATORS),
    }
    said = Event(EventKind.TOOL_INDETERMINATE, place.path, told, ts=now)
    return [*put(state, place, request, routing, now), said]


def _settled(place: Place, slot: Slot, held: Held, now: int) -> list[Event]:
    """What an operator said of a call in doubt; its step goes on with that (I74)."""
    assert slot.ask is not None
    told = {"key": slot.ask["key"], "tool": slot.ask["tool"]}
    outcome = str((held.response or {}).get("outcome", actions.ABANDON))
    said = Event(
        EventKind.TOOL_SETTLED,
        place.path,
        {**told, "as": outcome, "by": held.router_id or ""},
        ts=now,
    )
    return [said, again(place.path, slot, now)]


def pause(state: RunState, slot: Slot) -> Outcome:
    """What the node shows while its question is out."""
    held = _held(state.callbacks, slot.request_id)
    if held is None:
        return slot.outcome or Outcome(status="paused", summary="waiting for an answer")
    return waiting_outcome(held.request, question=held.request.decision_text)


def paused_end(state: RunState, path: Path, label: str) -> dict[str, Any] | None:
    """The fields of `job:end` when a session leaves at a question; None when it is recorded."""
    slot = state.slots[path]
    held = _held(state.callbacks, slot.request_id)
    if slot.outcome is not None or held is None:
        return None
    return {"label": label, "outcome": pause(state, slot).to_json(), "asked": asked(held.request)}


def follow_up(state: RunState, place: Place, slot: Slot, now: int) -> list[Event]:
    """What an answer (or the end of the question) leads to; nothing while it is open."""
    held = _held(state.callbacks, slot.request_id)
    if held is None:
        return []
    purpose = slot.ask.get("purpose") if slot.ask is not None else None
    if purpose == actions.ACTION:
        # Each was recorded as decided or as over; the step goes on when all are (I39, I47).
        waits = held.is_live or actions.open_at(state, place.path) or _kept_back(state, slot)
        return [] if waits else [again(place.path, slot, now)]
    if held.status == "answered":
        return _answered(state, place, slot, held, purpose, now)
    over = state.expired.get(slot.request_id)
    if over is not None:
        return _expired(place, slot, held.request, over, now)
    return _closed(state, place, held, purpose, now)


def _answered(
    state: RunState, place: Place, slot: Slot, held: Held, purpose: Any, now: int
) -> list[Event]:
    """What an answer leads to; one that too few people stand behind leads nowhere."""
    if quorums.lacks_people(state, slot.request_id, held.response or {}):
        needed = quorums.tally_of(state, slot.request_id).needed
        text = f"the question needs {needed} people, and was answered without them."
        return _failed(
            place, failing(LoopError("VALIDATION", text, phase="body")), held.request, now
        )
    if _kept_back(state, slot):
        return []
    if purpose == actions.DOUBT:
        return _settled(place, slot, held, now)
    if purpose == "approval":
        return [_approved(state, place, slot, held, now)]
    if purpose == "reconcile":
        outcome = reconcile_outcome(held.response or {})
        if outcome is not None:
            return [_job_end(place.path, place.leaf.label, outcome, held.request, now)]
    return [again(place.path, slot, now)]


def _closed(state: RunState, place: Place, held: Held, purpose: Any, now: int) -> list[Event]:
    """What follows when the question is gone and nobody can answer it; nothing while it is open."""
    why = state.withdrawn.get(held.request.request_id)
    if why is not None:
        outcome = dead_outcome(held.request, f"withdrawn: {why}" if why else "withdrawn")
    elif held.status != "superseded":
        return []
    elif purpose in interactions.PURPOSES:
        # The step asks again when somebody resumes the run (gates.md G134).
        outcome = waiting_outcome(held.request, question=held.request.decision_text)
        return [_job_end(place.path, place.leaf.label, outcome, None, now)]
    else:
        outcome = dead_outcome(held.request, "superseded")
    return _failed(place, outcome, held.request, now)


def _expired(
    place: Place, slot: Slot, request: CallbackRequest, over: Mapping[str, Any], now: int
) -> list[Event]:
    """The end that the asker chose for a question nobody answered in its time."""
    purpose = slot.ask.get("purpose") if slot.ask is not None else None
    if purpose == questions.PURPOSE and over.get("onExpiry") == clocks.ANSWER:
        return [again(place.path, slot, now)]
    if slot.ask is None or purpose != "approval":
        outcome = dead_outcome(request, clocks.expired_words(over))
        return _failed(place, outcome, request, now)
    outcome = expired_outcome(over, question=request.decision_text, target=slot.ask.get("target"))
    return [_job_end(place.path, place.leaf.label, outcome, request, now)]


def again(path: Path, slot: Slot, now: int) -> Event:
    """Give the step back to a worker: same attempt, next start."""
    return Event(EventKind.STEP_READY, path, {"number": slot.number + 1}, ts=now)


def _held(state: CallbackState, request_id: str) -> Held | None:
    return state.requests.get(request_id)


def _kept_back(state: RunState, slot: Slot) -> bool:
    """`on_answer="hold"` waits for somebody to resume (design D4)."""
    holds = slot.ask is not None and slot.ask.get("onAnswer") == "hold"
    return holds and slot.request_id not in state.resumed


def _approved(state: RunState, place: Place, slot: Slot, held: Held, now: int) -> Event:
    assert slot.ask is not None
    outcome = approval_outcome(
        held.response or {},
        question=held.request.decision_text,
        target=slot.ask.get("target"),
    )
    if slot.request_id in state.overridden:
        outcome = overridden_outcome(outcome)
    return _job_end(place.path, place.leaf.label, outcome, held.request, now)


def _job_start(place: Place, now: int) -> Event:
    return Event(EventKind.JOB_START, place.path, {"label": place.leaf.label}, ts=now)


def _job_end(
    path: Path, label: str, outcome: Outcome, request: CallbackRequest | None, now: int
) -> Event:
    fields: dict[str, Any] = {"label": label, "outcome": outcome.to_json()}
    if request is not None:
        fields["asked"] = asked(request)
    return Event(EventKind.JOB_END, path, fields, ts=now)


def asked(request: CallbackRequest) -> dict[str, str]:
    """What `job:end` says of the question a step put (gates.md G108)."""
    return {
        "requestId": request.request_id,
        "gateId": request.gate_id,
        "question": request.decision_text,
    }
