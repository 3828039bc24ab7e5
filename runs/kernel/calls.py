"""What a call of a tool may do next, decided from the record (interactions.md I36, I72-I79).

Each function looks at a state and says what follows: a verdict for the caller, and the events to
record. The driver records them in the turn in which they were decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from runs.kernel import actions, grants
from runs.kernel.action_requests import action_request, decisions_for
from runs.kernel.actions import ACTION, ALLOW_ALWAYS, Action, Ask
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.gate import CallbackRequest
from runs.kernel.grants import Grant
from runs.kernel.jsonable import JSONValue
from runs.kernel.slots import RunState

MAX_OPEN: Final = 100
NEVER: Final = "never"

# Words a caller may rely on (interactions.md I95).
DENIED: Final = "approval_denied"
EXPIRED: Final = "approval_expired"
STALE: Final = "approval_stale"
FORBIDDEN: Final = "forbidden"
WITHDRAWN: Final = "approval_withdrawn"
CONFLICT: Final = "conflict"
KEY_CONFLICT: Final = "idempotency_conflict"
CANCELLED: Final = "cancelled"
TOO_MANY: Final = "too_many_open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a call's gate goes by and the run's record does not hold, as it is in that turn."""

    grants: Sequence[Grant] = ()
    authorised: bool = True
    always_permitted: bool = False
    policy_version: str = ""
    principal: str = ""
    conversation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool with its input normalised.

    `facts` are the tool's own; `attempt` names the attempt of its step, and `ask` counts the calls
    with this key in this start of it, from 1. `request_id` is the yes under which a stored call is
    made; `mark` is this call's alone.
    """

    key: str
    input: JSONValue
    input_digest: str
    facts: Mapping[str, Any]
    path: Path
    attempt: str = ""
    ask: int = 1
    request_id: str = ""
    mark: str = ""

    @property
    def tool(self) -> str:
        return str(self.facts["tool"])

    def event(self, kind: str, **fields: Any) -> Event:
        return Event(kind, self.path, {"key": self.key, "tool": self.tool, **fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a call came to at the gate: its result, a refusal, a question, or that it may run.

    `resumed` is how far an earlier start had come with it, `started` or `reserved`.
    """

    kind: Literal["result", "failed", "refused", "ask", "run"]
    result: JSONValue = None
    code: str = ""
    message: str = ""
    retryable: bool = False
    request: CallbackRequest | None = None
    routing: Mapping[str, Any] = field(default_factory=dict)
    resumed: str = ""


Entered = tuple[Verdict, list[Event]]


def enter(state: RunState, call: Call, around: Surroundings, now: int) -> Entered:
    """The gate, in the order of I36; reserves the call where it may run (I73)."""
    if state.cancelled:
        # Whoever cancels has the run's lock: nothing is reserved after it (I71).
        return _refuse(CANCELLED, "the run was cancelled.")
    action = state.actions.get(call.key)
    if action is not None and (verdict := _known(state, call, action)) is not None:
        return verdict
    if action is not None and action.execution in actions.IN_FLIGHT:
        return _taken_over(state, call, action)
    ask = None if action is None else _asking(action, call)
    if not around.authorised and ask is None:
        return _refuse("not_found", f"there is no tool {call.tool!r} for this run.")
    if call.facts["policy"] == NEVER:
        return _reserved(state, call)
    if action is not None and action.denied is not None:
        return _denied(action.denied)
    if action is not None and ask is not None:
        return _by_asking(state, call, action, ask, around, now)
    grant = _grant(call, around, now)
    if grant is not None:
        return _reserved(state, call, grantId=grant.grant_id)
    return _ask(state, call, around)


def _by_asking(
    state: RunState, call: Call, action: Action, ask: Ask, around: Surroundings, now: int
) -> Entered:
    """What came of the asking that this call of the step put."""
    if ask.refused:
        return _refuse(ask.refused, _WHY.get(ask.refused, "the approval did not let it run."))
    if ask.is_open:
        return _ask(state, call, around, ask)
    if not ask.is_allowed:
        return _denied(ask)
    return _by_approval(state, call, action, ask, around, now)


def _known(state: RunState, call: Call, action: Action) -> Entered | None:
    """What the key alone answers, before anybody is asked (I36.4, I79, I80)."""
    if (action.input_digest, action.tool) != (call.input_digest, call.tool):
        return _refuse(KEY_CONFLICT, "this key belongs to a call with another input.")
    match action.execution:
        case "succeeded":
            return Verdict(kind="result", result=action.result), []
        case "failed" if action.error.get("retryable") is not True:
            return _failed(action.error), []
        case "indeterminate":
            return _refuse(CONFLICT, "nobody has said yet whether this call happened.")
        case "reserved" | "started":
            if action.mark == call.mark:
                # The turn that reserved it was committed, and its answer lost.
                return Verdict(kind="run"), []
            if actions.is_alive(state, action):
                return _refuse(CONFLICT, "the same call is under way.", retryable=True)
            if action.execution == "started" and action.recovery == "none":
                text = "the same call was begun elsewhere, and its end is not known."
                return _refuse(CONFLICT, text)
    return None


def _taken_over(state: RunState, call: Call, action: Action) -> Entered:
    """A call that a start which is gone had in hand goes on under the same yes (I74, I79)."""
    come_to = str(action.execution)
    _, events = _reserved(state, call, **_under(action), resumed=come_to)
    return Verdict(kind="run", resumed=come_to), events


def _under(action: Action) -> dict[str, str]:
    return {"requestId": action.request_id} if action.request_id else {}


def _by_approval(
    state: RunState, call: Call, action: Action, ask: Ask, around: Surroundings, now: int
) -> Entered:
    """A decided approval lets its own call run once, in its time, if nothing changed (I49, I72)."""
    retried = action.execution == "failed"
    if ask.used and not retried:
        return _refuse(EXPIRED, _WHY[EXPIRED])
    code = ""
    if not around.authorised:
        code = FORBIDDEN
    elif ask.about.get("toolDigest") != call.facts["toolDigest"]:
        code = STALE
    elif ask.decision == ALLOW_ALWAYS and not around.always_permitted:
        code = FORBIDDEN
    elif now >= _in_time_until(state, ask):
        code = EXPIRED
    if code:
        refused = call.event(EventKind.TOOL_REFUSED, requestId=ask.request_id, code=code)
        return _refuse(code, _WHY[code])[0], [refused]
    return _reserved(state, call, requestId=ask.request_id)


def _in_time_until(state: RunState, ask: Ask) -> int:
    """A yes holds for its window from when its step could go on (I49)."""
    freed = actions.freed_at(state, tuple(ask.about.get("path") or ()))
    window = float(ask.about.get("windowSeconds", 0))
    return max(ask.decided_at, freed) + int(window * 1000)


def _asking(action: Action, call: Call) -> Ask | None:
    """The asking that this call put before; else one that is open, or a yes nobody has used.

    What came of the askings of an earlier attempt says nothing to a later one (design D6).
    """
    if call.request_id:
        return next((one for one in action.asks if one.request_id == call.request_id), None)
    own = [one for one in action.asks if one.about.get("of") == call.attempt]
    if len(own) >= call.ask:
        return own[call.ask - 1]
    return next((one for one in reversed(action.asks) if one.is_open or one.is_unused), None)


def _grant(call: Call, around: Surroundings, now: int) -> Grant | None:
    """The standing grant for this call; where the policy is `always`, none counts (I34)."""
    if call.facts["policy"] != "policy":
        return None
    return grants.find(
        around.grants,
        call.tool,
        str(call.facts.get("category") or ""),
        principal=around.principal,
        conversation=around.conversation,
        now=now,
    )


def _reserved(state: RunState, call: Call, **under: Any) -> Entered:
    slot = state.slots[actions.slot_path(state, call.path)]
    event = call.event(
        EventKind.TOOL_RESERVED,
        inputDigest=call.input_digest,
        recovery=call.facts["recovery"],
        number=slot.number,
        mark=call.mark,
        **under,
    )
    return Verdict(kind="run"), [event]


def _ask(state: RunState, call: Call, around: Surroundings, known: Ask | None = None) -> Entered:
    """The request for a person's yes; the same call gets the same request (I36.9, I36.10)."""
    action = state.actions.get(call.key)
    asks = () if action is None else action.asks
    if known is not None and (held := state.callbacks.get(known.request_id)) is not None:
        routing = {name: known.about[name] for name in known.about if name != "path"}
        return Verdict(kind="ask", request=held.request, routing=routing), []
    if known is None and len(state.approvals) >= MAX_OPEN:
        return _refuse(TOO_MANY, f"a run has at most {MAX_OPEN} approvals open.")
    ask = len(asks) + 1 if known is None else asks.index(known) + 1
    always = around.always_permitted and call.facts["effect"] != "destructive"
    request = action_request(
        call.facts,
        call.input,
        call.key,
        ask=ask,
        decisions=decisions_for(
            str(call.facts["policy"]),
            conversation=around.conversation,
            always=always and bool(around.principal),
        ),
    )
    routing = {
        **call.facts["routing"],
        "purpose": ACTION,
        "kind": "approval",
        "risk": call.facts["risk"],
        "question": request.decision_text,
        "summary": call.facts["summary"],
        "key": call.key,
        "tool": call.tool,
        "toolDigest": call.facts["toolDigest"],
        "inputDigest": call.input_digest,
        "recovery": call.facts["recovery"],
        "effect": call.facts["effect"],
        "category": call.facts["category"],
        "policy": call.facts["policy"],
        "windowSeconds": call.facts["windowSeconds"],
        "ask": ask,
        "of": call.attempt,
        "principal": around.principal,
        "conversation": around.conversation,
        "policyVersion": around.policy_version,
    }
    return Verdict(kind="ask", request=request, routing=routing), []


def _denied(ask: Ask) -> Entered:
    note = f": {ask.note}" if ask.note else "."
    return _refuse(DENIED, f"{ask.decided_by or 'a person'} said no{note}")


def _failed(error: Mapping[str, Any]) -> Verdict:
    return Verdict(
        kind="failed",
        code=str(error.get("code", "internal")),
        message=str(error.get("message", "")),
        retryable=error.get("retryable") is True,
    )


def _refuse(code: str, message: str, *, retryable: bool = False) -> Entered:
    return Verdict(kind="refused", code=code, message=message, retryable=retryable), []


_WHY: Final[Mapping[str, str]] = {
    EXPIRED: "the time of its approval is over; it may be asked for again.",
    STALE: "the tool or its input is not what was approved; it may be asked for again.",
    FORBIDDEN: "whoever this run works for may not do that any more.",
    WITHDRAWN: "the question was taken back.",
    "approval_superseded": "another question took the place of this one.",
}


# --- running -------------------------------------------------------------------------------------


def started(state: RunState, call: Call) -> list[Event]:
    """The call leaves this process now; what follows a crash is its recovery (I73, I74)."""
    action = state.actions[call.key]
    if action.mark != call.mark or action.execution != "reserved":
        return []
    return [call.event(EventKind.TOOL_STARTED)]


def has_in_hand(state: RunState, call: Call) -> bool:
    """Whether the record still says that it is this call that runs."""
    action = state.actions.get(call.key)
    return action is not None and action.mark == call.mark


def ended(
    state: RunState, call: Call, *, result: JSONValue = None, error: Mapping[str, Any] | None = None
) -> list[Event]:
    """What the call came to; told a second time it is the same end."""
    action = state.actions.get(call.key)
    if action is None or action.mark != call.mark or action.execution not in actions.IN_FLIGHT:
        return []
    if error is not None:
        return [call.event(EventKind.TOOL_FAILED, error=error)]
    return [call.event(EventKind.TOOL_COMPLETED, result=result)]


def not_run(call: Call, request_id: str, code: str) -> list[Event]:
    """An approved call that cannot run as it was approved (I72)."""
    return [call.event(EventKind.TOOL_REFUSED, requestId=request_id, code=code)]


# --- going on ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """An approved call that runs before its step does, with the input that was stored (I68)."""

    request_id: str
    key: str
    tool: str
    input: JSONValue


def ready_at(state: RunState, path: Path) -> tuple[Ready, ...]:
    """What the step at `path` runs first: what a lost start had in hand, then what is allowed."""
    found = [
        (action, number)
        for action in actions.in_flight(state, path)
        for number, ask in enumerate(action.asks, start=1)
        if ask.request_id == action.request_id
    ]
    ready = []
    for action, number in [*found, *actions.allowed_at(state, path)]:
        request_id = action.asks[number - 1].request_id
        held = state.callbacks.get(request_id)
        stored = None if held is None else held.request.input
        if isinstance(stored, Mapping):
            ready.append(
                Ready(
                    request_id=request_id,
                    key=action.key,
                    tool=action.tool,
                    input=stored["input"],
                )
            )
    return tuple(ready)
