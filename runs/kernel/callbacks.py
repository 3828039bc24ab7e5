"""Callback requests as a fold of their events, and the operations that make those events.

An operation looks at a state and says what would happen: a result and the events to record. It
changes nothing; whoever keeps the record appends the events and folds them in.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from runs.kernel import callback_events as events
from runs.kernel.answers import refusal
from runs.kernel.callback_events import CallbackKind, WireEvent, is_about
from runs.kernel.callback_results import ClaimResult, ReleaseResult, SubmitResult
from runs.kernel.evolving import evolve
from runs.kernel.gate import MAX_DEFINITION_DEPTH, CallbackRequest, validate_callback_request
from runs.kernel.jsonable import JSONValue, frozen_object, snapshot

__all__ = [
    "CallbackKind",
    "CallbackSequenceError",
    "CallbackState",
    "CallbackStatus",
    "ClaimResult",
    "Held",
    "ReleaseResult",
    "SubmitResult",
    "WireEvent",
    "claim",
    "empty",
    "fold",
    "fold_all",
    "is_about",
    "post",
    "release",
    "submit",
    "supersede",
]


class CallbackSequenceError(ValueError):
    """The event cannot follow the ones before it."""

    code = "CALLBACK_SEQUENCE"


class CallbackStatus(StrEnum):
    """Where a request stands."""

    PENDING = "pending"
    CLAIMED = "claimed"
    ANSWERED = "answered"
    SUPERSEDED = "superseded"


_LIVE: Final = frozenset({CallbackStatus.PENDING, CallbackStatus.CLAIMED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One request and what has become of it; an answered one keeps the router that answered."""

    request: CallbackRequest
    status: CallbackStatus = CallbackStatus.PENDING
    router_id: str | None = None
    claim_token: str | None = None
    response: Mapping[str, JSONValue] | None = None
    superseded_by: str | None = None

    @property
    def is_live(self) -> bool:
        """Whether the question can still be answered."""
        return self.status in _LIVE


@dataclass(frozen=True, slots=True)
class CallbackState:
    """All requests of one history, in the order they were first posted."""

    _held: dict[str, Held] = field(default_factory=dict)

    @property
    def requests(self) -> Mapping[str, Held]:
        """Request id to what is held about it."""
        return MappingProxyType(self._held)

    def get(self, request_id: object) -> Held | None:
        """What is held about a request, or None when it was never posted."""
        return self._held.get(request_id) if isinstance(request_id, str) else None

    def pending(self) -> list[CallbackRequest]:
        """The requests nobody holds and nobody has answered, first posted first."""
        return [
            held.request for held in self._held.values() if held.status is CallbackStatus.PENDING
        ]


def empty() -> CallbackState:
    """The state before anything was posted."""
    return CallbackState()


def fold(state: CallbackState, event: object) -> CallbackState:
    """The state after one more event; raise when it is malformed or cannot have happened."""
    return fold_all(state, (event,))


def fold_all(state: CallbackState, history: Iterable[object]) -> CallbackState:
    """The state after several more events: all of them, or an exception."""
    held = state._held.copy()
    for value in history:
        event = events.read_event(value)
        after = _after(held, event)
        held[after.request.request_id] = after
    return CallbackState(held)


def post(state: CallbackState, request: CallbackRequest | Mapping[str, object]) -> list[WireEvent]:
    """Ask: the events that leave this request the only live one of its gate."""
    valid = validate_callback_request(request)
    made = [
        events.superseded(other_id, valid.request_id)
        for other_id, other in state._held.items()
        if other.request.gate_id == valid.gate_id and other.is_live and other_id != valid.request_id
    ]
    known = state.get(valid.request_id)
    if known is None:
        made.append(events.requested(valid))
    elif known.status is CallbackStatus.SUPERSEDED:
        # Asked again as it was first shown: a later presentation is not another question.
        made.append(events.requested(known.request))
    return made


def claim(
    state: CallbackState, request_id: str, router_id: str, token: str
) -> tuple[ClaimResult, list[WireEvent]]:
    """Take a pending request for one router, under the token given."""
    events.text("router_id", router_id)
    held = state.get(request_id)
    if held is None:
        return ClaimResult(ok=False, kind="missing"), []
    if held.status is not CallbackStatus.PENDING:
        holder = held.router_id if held.status is CallbackStatus.CLAIMED else None
        return ClaimResult(ok=False, kind=held.status.value, router_id=holder), []
    events.text("token", token)
    made = events.claimed(request_id, router_id, token)
    return ClaimResult(ok=True, claim_token=token), [made]


def submit(
    state: CallbackState,
    request_id: str,
    *,
    claim_token: str,
    router_id: str,
    request_digest: str,
    response: object,
) -> tuple[SubmitResult, list[WireEvent]]:
    """Answer a claimed request; a wrong answer is recorded as rejected and the claim stays."""
    answer = snapshot(response, max_depth=MAX_DEFINITION_DEPTH)
    held = state.get(request_id)
    if held is None:
        return _refused("missing", f"There is no request {request_id!r}."), []
    if held.status is CallbackStatus.SUPERSEDED:
        return _refused("stale", f"{request_id} was superseded by {held.superseded_by}."), []
    if held.status is not CallbackStatus.CLAIMED or held.router_id is None:
        return _refused("not-claimed", f"{request_id} is {held.status}; claim it first."), []
    if not _same(held.claim_token, claim_token) or held.router_id != router_id:
        return _refused("not-owner", f"{request_id} is held under another claim."), []
    if request_digest != held.request.digest:
        return _refused("stale", f"{request_id} has another digest; read the question again."), []
    reason = refusal(held.request.response_schema, answer)
    if reason is not None:
        return _refused("invalid", reason), [events.rejected(request_id, held.router_id, reason)]
    made = events.submitted(held.request, held.router_id, answer)
    return SubmitResult(ok=True, response=answer), [made]


def release(
    state: CallbackState, request_id: str, claim_token: str
) -> tuple[ReleaseResult, list[WireEvent]]:
    """Give a claimed request back, with the token of its claim."""
    held = state.get(request_id)
    if held is None:
        return ReleaseResult(ok=False, kind="missing"), []
    if held.router_id is None or not _is_holder(held, claim_token):
        return ReleaseResult(ok=False, kind="not-owner"), []
    return ReleaseResult(ok=True), [events.released(request_id, held.router_id)]


def supersede(state: CallbackState, request_id: str, superseded_by: str) -> list[WireEvent]:
    """Take a live request out of play; nothing happens to one that is not live."""
    events.text("superseded_by", superseded_by)
    held = state.get(request_id)
    return [events.superseded(request_id, superseded_by)] if held and held.is_live else []


def _after(held: Mapping[str, Held], event: WireEvent) -> Held:
    """What is held about the event's request once it has happened."""
    if event["kind"] == CallbackKind.REQUESTED:
        return _requested(held, validate_callback_request(event["request"]))
    request_id = str(event["requestId"])
    known = held.get(request_id)
    if known is None:
        raise CallbackSequenceError(f"{event['kind']}: {request_id} was never requested.")
    match event["kind"]:
        case CallbackKind.CLAIMED:
            _expect(known.status is CallbackStatus.PENDING, event, known)
            return evolve(
                known,
                status=CallbackStatus.CLAIMED,
                router_id=str(event["routerId"]),
                claim_token=str(event["claimToken"]),
            )
        case CallbackKind.RELEASED:
            _expect(_is_held_by(known, event), event, known)
            return Held(request=known.request)
        case CallbackKind.REJECTED:
            _expect(_is_held_by(known, event), event, known)
            return known
        case CallbackKind.SUPERSEDED:
            _expect(known.is_live, event, known)
            return Held(
                request=known.request,
                status=CallbackStatus.SUPERSEDED,
                superseded_by=str(event["supersededBy"]),
            )
    return _submitted(known, event)


def _requested(held: Mapping[str, Held], request: CallbackRequest) -> Held:
    known = held.get(request.request_id)
    if known is None:
        return Held(request=request)
    if known.status is not CallbackStatus.SUPERSEDED:
        raise CallbackSequenceError(f"{request.request_id} is {known.status} and asked again.")
    return Held(request=known.request)


def _submitted(known: Held, event: WireEvent) -> Held:
    _expect(_is_held_by(known, event), event, known)
    if event["requestDigest"] != known.request.digest:
        raise CallbackSequenceError(f"{event['requestId']} was answered for another digest.")
    reason = refusal(known.request.response_schema, event["response"])
    if reason is not None:
        raise CallbackSequenceError(f"{event['requestId']} has an answer it refuses: {reason}")
    return evolve(
        known,
        status=CallbackStatus.ANSWERED,
        claim_token=None,
        response=frozen_object("response", event["response"]),
    )


def _expect(possible: bool, event: WireEvent, known: Held) -> None:
    if not possible:
        holder = f" held by {known.router_id}" if known.status is CallbackStatus.CLAIMED else ""
        raise CallbackSequenceError(
            f"{event['kind']} cannot happen to {event['requestId']}: it is {known.status}{holder}."
        )


def _is_held_by(known: Held, event: WireEvent) -> bool:
    return known.status is CallbackStatus.CLAIMED and known.router_id == event["routerId"]


def _is_holder(held: Held, token: object) -> bool:
    return held.status is CallbackStatus.CLAIMED and _same(held.claim_token, token)


def _same(kept: str | None, given: object) -> bool:
    if kept is None or not isinstance(given, str):
        return False
    # Takes the same time wherever the two differ, so a token cannot be guessed piece by piece.
    return hmac.compare_digest(kept.encode(), given.encode("utf-8", "surrogatepass"))


def _refused(kind: str, reason: str) -> SubmitResult:
    return SubmitResult(ok=False, kind=kind, reason=reason)
