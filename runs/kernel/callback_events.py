"""The six callback events: their exact fields, and how each is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, cast

from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import JSONValue, frozen_object, snapshot


class CallbackKind(StrEnum):
    """What can happen to a callback request."""

    REQUESTED = "callback-requested"
    CLAIMED = "callback-claimed"
    RELEASED = "callback-released"
    SUBMITTED = "callback-submitted"
    REJECTED = "callback-rejected"
    SUPERSEDED = "callback-superseded"


WireEvent = Mapping[str, JSONValue]

_FIELDS: Final[dict[str, frozenset[str]]] = {
    CallbackKind.REQUESTED: frozenset({"request"}),
    CallbackKind.CLAIMED: frozenset({"requestId", "routerId", "claimToken"}),
    CallbackKind.RELEASED: frozenset({"requestId", "routerId"}),
    CallbackKind.SUBMITTED: frozenset({"requestId", "requestDigest", "routerId", "response"}),
    CallbackKind.REJECTED: frozenset({"requestId", "routerId", "reason"}),
    CallbackKind.SUPERSEDED: frozenset({"requestId", "supersededBy"}),
}
# What is not a text: a request is read on its own, a response by its gate's schema.
_NOT_TEXT: Final = frozenset({"request", "response"})
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def requested(request: CallbackRequest) -> WireEvent:
    """The question was asked."""
    return _event(CallbackKind.REQUESTED, request=request.to_wire())


def claimed(request_id: str, router_id: str, token: str) -> WireEvent:
    """One router took the question."""
    return _event(CallbackKind.CLAIMED, requestId=request_id, routerId=router_id, claimToken=token)


def released(request_id: str, router_id: str) -> WireEvent:
    """The router gave the question back."""
    return _event(CallbackKind.RELEASED, requestId=request_id, routerId=router_id)


def submitted(request: CallbackRequest, router_id: str, response: JSONValue) -> WireEvent:
    """The question was answered."""
    return _event(
        CallbackKind.SUBMITTED,
        requestId=request.request_id,
        requestDigest=request.digest,
        routerId=router_id,
        response=response,
    )


def rejected(request_id: str, router_id: str, reason: str) -> WireEvent:
    """An answer was refused; the claim stays."""
    return _event(CallbackKind.REJECTED, requestId=request_id, routerId=router_id, reason=reason)


def superseded(request_id: str, superseded_by: str) -> WireEvent:
    """Another question took this one's place."""
    return _event(CallbackKind.SUPERSEDED, requestId=request_id, supersededBy=superseded_by)


def read_event(value: object) -> WireEvent:
    """Check an event's kind and fields and freeze it; raise ValueError when it is malformed."""
    event = frozen_object("The callback event", value)
    kind = event.get("kind")
    fields = _FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise ValueError(f"{kind!r} is not a kind of callback event.")
    if event.keys() - {"kind"} != fields:
        odd = ", ".join(sorted((event.keys() - {"kind"}) ^ fields))
        raise ValueError(f"{kind} does not have exactly its fields. Look at: {odd}.")
    for name in fields - _NOT_TEXT:
        text(name, event[name])
    digest = event.get("requestDigest")
    if digest is not None and not _DIGEST.fullmatch(str(digest)):
        raise ValueError(f"{kind}: requestDigest is not 64 lowercase hex digits.")
    return event


def is_about(event: WireEvent, request_id: str) -> bool:
    """Whether the event happened to this request, rather than only naming it."""
    request = event.get("request")
    if isinstance(request, dict):
        return request.get("requestId") == request_id
    return event.get("requestId") == request_id


def text(name: str, value: object) -> str:
    """A text that says something, or ValueError naming the field."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is not a non-empty text.")
    return value


def _event(kind: CallbackKind, **fields: object) -> WireEvent:
    return cast(WireEvent, snapshot({"kind": kind.value, **fields}))
