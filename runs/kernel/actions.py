"""Calls of tools as the record has them: who allowed them, and how far each one came.

A call has an idempotency key of its run, its tool and its normalised input (interactions.md I78),
so the identical call of the same run is the same action. What is known of an action is a fold of
its events; `runs.kernel.calls` decides what a call may do next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from runs.kernel.events import Event, EventKind, Path
from runs.kernel.evolving import evolve
from runs.kernel.jsonable import JSONValue, digest_hex
from runs.kernel.slots import RunState, put_slot

# The purposes of the two questions: may it run, and did it happen.
ACTION: Final = "action"
DOUBT: Final = "doubt"
# One organisation per deployment (design D12), so every key holds the same one.
ORGANISATION: Final = "obversa"

ALLOW_ONCE: Final = "allow_once"
ALLOW_CONVERSATION: Final = "allow_conversation"
ALLOW_ALWAYS: Final = "allow_always"
DENY: Final = "deny"
ALLOWS: Final = frozenset({ALLOW_ONCE, ALLOW_CONVERSATION, ALLOW_ALWAYS})

HAPPENED: Final = "happened"
DID_NOT_HAPPEN: Final = "did-not-happen"
ABANDON: Final = "abandon"

Execution = Literal["none", "reserved", "started", "succeeded", "failed", "indeterminate"]
IN_FLIGHT: Final = frozenset({"reserved", "started"})
_STORED: Final = frozenset({"requestId", "key", "tool", "inputDigest", "recovery"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One asking about an action; `about` is what was stored when it was asked.

    `used` once it let the call run. `refused` is the code under which it ended without that.
    Times in ms since the epoch: `decided_at`, and `closed_at` for whatever ended it.
    """

    request_id: str
    about: Mapping[str, Any] = field(default_factory=dict)
    decision: str = ""
    decided_by: str = ""
    decided_at: int = 0
    closed_at: int = 0
    note: str = ""
    used: bool = False
    refused: str = ""

    @property
    def is_open(self) -> bool:
        return not self.decision and not self.refused

    @property
    def is_unused(self) -> bool:
        """Whether it is a yes that has let nothing run yet, and still may."""
        return self.is_allowed and not self.used and not self.refused

    @property
    def is_allowed(self) -> bool:
        """A whitelist: any other or later word is no permission (interactions.md I42)."""
        return self.decision in ALLOWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action and what has become of it (interactions.md I73).

    `path` and `number` name the start that has it in hand, `mark` the one call in it.
    """

    key: str
    tool: str = ""
    input_digest: str = ""
    recovery: str = "none"
    path: Path = ()
    number: int = 0
    mark: str = ""
    asks: tuple[Ask, ...] = ()
    execution: Execution = "none"
    request_id: str = ""
    result: JSONValue = None
    error: Mapping[str, Any] = field(default_factory=dict)

    @property
    def denied(self) -> Ask | None:
        return next((ask for ask in self.asks if ask.decision == DENY), None)


# --- keys ----------------------------------------------------------------------------------------


def call_key(
    organisation: str, run_id: str, tool: str, input_digest: str, *, call_id: str = ""
) -> str:
    """The idempotency key of a call; a model's own call has its id instead of its input (I78)."""
    if call_id:
        return digest_hex(["tool-call", organisation, run_id, call_id])
    return digest_hex(["call", organisation, run_id, tool, input_digest])


def step_key(attempt: str, number: int, tool: str, input_digest: str) -> str:
    """The key of a call that needs none: the same for the same call of one attempt of its step."""
    return digest_hex(["step-call", ORGANISATION, attempt, number, tool, input_digest])


# --- looking at the state ------------------------------------------------------------------------


def slot_path(state: RunState, path: Path) -> Path:
    """Where the step stands that a job at `path` belongs to: a job inside it has no slot."""
    while path and path not in state.slots:
        path = path[:-1]
    return path


def is_alive(state: RunState, action: Action) -> bool:
    """Whether the start that has the action in hand still works."""
    slot = state.slots.get(action.path)
    return slot is not None and slot.status == "running" and slot.number == action.number


def in_flight(state: RunState, path: Path) -> list[Action]:
    """The actions that the step at `path` has in hand without a result."""
    return [
        action
        for action in state.actions.values()
        if action.path == path and action.execution in IN_FLIGHT
    ]


def in_doubt(in_hand: list[Action]) -> Action | None:
    """The first of a lost step's actions of which nobody can say what became of it (I74)."""
    return next(
        (one for one in in_hand if one.execution == "started" and one.recovery == "none"), None
    )


def open_at(state: RunState, path: Path) -> list[str]:
    """The undecided requests that the step at `path` waits for (interactions.md I39)."""
    return [
        request_id
        for request_id, key in state.approvals.items()
        if _ask_of(state, key, request_id).about.get("path") == path
        and not _ask_of(state, key, request_id).about.get("reported")
    ]


def freed_at(state: RunState, path: Path) -> int:
    """When the step at `path` had its last answer: what was asked together goes on together."""
    closed = (
        ask.closed_at
        for action in state.actions.values()
        for ask in action.asks
        if ask.about.get("path") == path
    )
    return max(closed, default=0)


def allowed_at(state: RunState, path: Path) -> list[tuple[Action, int]]:
    """What the step at `path` may run now: allowed and not used, first decided first (I68).

    Each with the number of its asking, from 1.
    """
    found = [
        (ask.decided_at, ask.request_id, action, number)
        for action in state.actions.values()
        for number, ask in enumerate(action.asks, start=1)
        if ask.is_unused and ask.about.get("path") == path
    ]
    found.sort(key=lambda one: one[:2])
    return [(action, number) for _, _, action, number in found]


def _ask_of(state: RunState, key: str, request_id: str) -> Ask:
    return next(ask for ask in state.actions[key].asks if ask.request_id == request_id)


# --- the fold ------------------------------------------------------------------------------------


def routed(state: RunState, event: Event) -> RunState:
    """An approval was asked for; asked again under the same id it is the same asking."""
    facts = event.fields
    if not facts.keys() >= _STORED:
        # Whoever else writes this purpose asks about nothing that was stored.
        return state
    request_id, key = str(facts["requestId"]), str(facts["key"])
    action = state.actions.get(key) or Action(key=key)
    action = evolve(
        action,
        tool=str(facts["tool"]),
        input_digest=str(facts["inputDigest"]),
        recovery=str(facts["recovery"]),
    )
    about = {**facts, "path": slot_path(state, event.path)}
    for ask in action.asks:
        if ask.request_id == request_id:
            # Whoever else waits for it now, it was asked by the attempt that asked first.
            about |= {"of": ask.about.get("of")}
            return _with_ask(_put(state, action), key, request_id, about=about)
    asked = Ask(request_id=request_id, about=about)
    state = _put(state, evolve(action, asks=(*action.asks, asked)))
    return evolve(state, approvals={**state.approvals, request_id: key})


def _decided(state: RunState, event: Event) -> RunState:
    facts = event.fields
    decided = _with_ask(
        _closed(state, facts["requestId"]),
        facts["key"],
        facts["requestId"],
        decision=facts["decision"],
        decided_by=facts.get("decidedBy", ""),
        decided_at=event.ts,
        closed_at=event.ts,
        note=facts.get("note", ""),
    )
    return _waits_for_another(decided, facts["requestId"])


def _refused(state: RunState, event: Event) -> RunState:
    facts = event.fields
    state = _closed(state, facts["requestId"])
    ended = {"refused": facts["code"], "closed_at": event.ts}
    state = _with_ask(state, facts["key"], facts["requestId"], **ended)
    return _waits_for_another(state, facts["requestId"])


def _waits_for_another(state: RunState, request_id: str) -> RunState:
    """A step that asked about several calls stands at one that is still open (I39)."""
    for path, slot in state.slots.items():
        if slot.status != "asking" or slot.request_id != request_id:
            continue
        for other in open_at(state, path):
            ask = _ask_of(state, state.approvals[other], other)
            return put_slot(state, path, request_id=other, ask=ask.about)
    return state


def _reserved(state: RunState, event: Event) -> RunState:
    facts = event.fields
    key, request_id = facts["key"], facts.get("requestId", "")
    action = state.actions.get(key) or Action(key=key)
    action = evolve(
        action,
        tool=facts["tool"],
        input_digest=facts["inputDigest"],
        recovery=facts["recovery"],
        path=slot_path(state, event.path),
        number=int(facts["number"]),
        mark=facts.get("mark", ""),
        # What was begun once stays begun, whoever goes on with it.
        execution="started" if facts.get("resumed") == "started" else "reserved",
        request_id=request_id,
        result=None,
        error={},
    )
    state = _put(state, action)
    return _with_ask(state, key, request_id, used=True) if request_id else state


def _started(state: RunState, event: Event) -> RunState:
    return _moved(state, event, execution="started")


def _completed(state: RunState, event: Event) -> RunState:
    facts = event.fields
    if facts["key"] not in state.actions:
        # A call that needs no key has no reservation: its result is all that is known of it.
        action = Action(key=facts["key"], tool=facts["tool"], input_digest=facts["inputDigest"])
        state = _put(state, action)
    return _moved(state, event, execution="succeeded", result=facts.get("result"), error={})


def _failed(state: RunState, event: Event) -> RunState:
    # A failure of a call without a reservation is told, and another try may go better.
    return _moved(state, event, execution="failed", error=event.fields["error"])


def _indeterminate(state: RunState, event: Event) -> RunState:
    return _moved(state, event, execution="indeterminate")


def _settled(state: RunState, event: Event) -> RunState:
    """What an operator found out: it happened, it did not and may run, or nobody wants it."""
    match event.fields["as"]:
        case "happened":
            return _moved(
                state, event, execution="succeeded", result=event.fields.get("result"), error={}
            )
        case "did-not-happen":
            return _moved(state, event, execution="reserved")
    error = {"code": "abandoned", "message": "An operator gave it up.", "retryable": False}
    return _moved(state, event, execution="failed", error=error)


def _moved(state: RunState, event: Event, **changes: Any) -> RunState:
    action = state.actions.get(event.fields["key"])
    return state if action is None else _put(state, evolve(action, **changes))


def _put(state: RunState, action: Action) -> RunState:
    return evolve(state, actions={**state.actions, action.key: action})


def _with_ask(state: RunState, key: str, request_id: str, **changes: Any) -> RunState:
    action = state.actions[key]
    asks = tuple(
        evolve(ask, **changes) if ask.request_id == request_id else ask for ask in action.asks
    )
    return _put(state, evolve(action, asks=asks))


def _closed(state: RunState, request_id: str) -> RunState:
    left = {known: key for known, key in state.approvals.items() if known != request_id}
    return evolve(state, approvals=left)


def _told(state: RunState, _event: Event) -> RunState:
    return state


HANDLERS: Final[Mapping[str, Callable[[RunState, Event], RunState]]] = {
    EventKind.APPROVAL_REQUESTED: _told,
    EventKind.APPROVAL_DECIDED: _decided,
    EventKind.GRANT_ISSUED: _told,
    EventKind.GRANT_REVOKED: _told,
    EventKind.TOOL_RESERVED: _reserved,
    EventKind.TOOL_STARTED: _started,
    EventKind.TOOL_COMPLETED: _completed,
    EventKind.TOOL_FAILED: _failed,
    EventKind.TOOL_REFUSED: _refused,
    EventKind.TOOL_SUPPRESSED: _told,
    EventKind.TOOL_INDETERMINATE: _indeterminate,
    EventKind.TOOL_SETTLED: _settled,
}
