"""A gate: one declared question, and the request that gives it an identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast, overload
from weakref import WeakValueDictionary

from runs.kernel.answers import check_schema
from runs.kernel.jsonable import (
    MAX_SAFE_INTEGER,
    FrozenDict,
    JSONValue,
    JsonValueError,
    digest_hex,
    frozen_object,
    snapshot,
)

# A request is stored inside an event inside an envelope; this leaves both their levels.
MAX_DEFINITION_DEPTH = 250

_WIRE_NAMES: Final = {
    "gate_id": "gateId",
    "gate_version": "gateVersion",
    "decision_text": "decisionText",
    "response_schema": "responseSchema",
    "input": "input",
    "presentation": "presentation",
}
# All eight, in the order in which they are written.
_REQUEST_FIELDS: Final = {
    "requestId": "request_id",
    "gateId": "gate_id",
    "gateVersion": "gate_version",
    "digest": "digest",
    "decisionText": "decision_text",
    "responseSchema": "response_schema",
    "input": "input",
    "presentation": "presentation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackRequest:
    """A question with an identity: the same definition gives the same request everywhere."""

    request_id: str
    gate_id: str
    gate_version: int
    digest: str
    decision_text: str
    response_schema: Mapping[str, JSONValue]
    input: JSONValue
    presentation: Mapping[str, JSONValue]
    _wire: FrozenDict | None = field(default=None, init=False, repr=False, compare=False)
    """Its wire form, when it was made here of its definition and cannot be another's."""

    def __hash__(self) -> int:
        return hash(self.request_id)

    def to_wire(self) -> dict[str, JSONValue]:
        """The eight fields as they are stored and sent."""
        if self._wire is not None:
            return self._wire
        wire = {spelling: getattr(self, name) for spelling, name in _REQUEST_FIELDS.items()}
        return cast(dict[str, JSONValue], snapshot(wire))

    @classmethod
    def from_wire(cls, wire: object) -> CallbackRequest:
        """Read a stored request, refusing one that was edited."""
        return validate_callback_request(wire)


@overload
def create_callback_gate(definition: Mapping[str, object], /) -> CallbackRequest: ...


@overload
def create_callback_gate(
    *,
    gate_id: str,
    gate_version: int,
    decision_text: str,
    response_schema: Mapping[str, Any],
    input: object,
    presentation: Mapping[str, Any] | None = None,
) -> CallbackRequest: ...


def create_callback_gate(
    definition: Mapping[str, object] | None = None, /, **fields: object
) -> CallbackRequest:
    """Turn a definition into its request; a schema no answer could pass is refused here."""
    request = _build(_definition(definition, fields))
    check_schema(request.response_schema)
    return request


@overload
def callback_request_digest(definition: Mapping[str, object], /) -> str: ...


@overload
def callback_request_digest(
    *,
    gate_id: str,
    gate_version: int,
    decision_text: str,
    response_schema: Mapping[str, Any],
    input: object,
    presentation: Mapping[str, Any] | None = None,
) -> str: ...


def callback_request_digest(
    definition: Mapping[str, object] | None = None, /, **fields: object
) -> str:
    """The digest the definition's request would have."""
    request = _build(_definition(definition, fields))
    check_schema(request.response_schema)
    return request.digest


def validate_callback_request(value: object) -> CallbackRequest:
    """Read a request from its wire form; raise ValueError when any of it was changed."""
    if isinstance(value, CallbackRequest):
        if value._wire is not None:
            return value
        value = value.to_wire()
    wire = frozen_object("The request", value)
    if _made.get(id(wire)) is wire:
        # The very object that was made of a request here: it is frozen, so it still is that.
        return _read(wire)
    if wire.keys() != _REQUEST_FIELDS.keys():
        odd = ", ".join(sorted(wire.keys() ^ _REQUEST_FIELDS.keys()))
        raise ValueError(f"The request does not have exactly its eight fields. Look at: {odd}.")
    request = _build({name: wire[spelling] for name, spelling in _WIRE_NAMES.items()})
    # The other six fields went into the request as they are, so only these two can be wrong.
    if (request.request_id, request.digest) != (wire["requestId"], wire["digest"]):
        raise ValueError(
            f"The request {wire['requestId']!r} is not what its definition makes. "
            "It was changed after it was created; post the question again."
        )
    return request


def split_request_id(request_id: str) -> tuple[str, int, str]:
    """The gate id, version and digest inside a request id; a gate id may hold `#` itself."""
    parts = request_id.rsplit("#", 2)
    if len(parts) != 3 or not parts[1].isdecimal():
        raise ValueError(f"{request_id!r} is not a request id.")
    return parts[0], int(parts[1]), parts[2]


def _definition(
    definition: Mapping[str, object] | None, fields: Mapping[str, object]
) -> dict[str, object]:
    if definition is not None and fields:
        raise ValueError("Give the gate as one mapping or as keyword arguments, not as both.")
    given = fields if definition is None else definition
    if not isinstance(given, Mapping):
        raise TypeError("The gate definition is not a mapping.")
    names = {spelling: name for name, spelling in _WIRE_NAMES.items()}
    read: dict[str, object] = {}
    for key, value in given.items():
        name = names.get(key, key)
        if name not in _WIRE_NAMES:
            raise ValueError(f"{key!r} is not a field of a gate definition.")
        if name in read:
            raise ValueError(f"{name} is given twice, in two spellings.")
        read[name] = value
    if read.get("presentation") is None:
        read.pop("presentation", None)
    return read


def _build(fields: Mapping[str, object]) -> CallbackRequest:
    gate_id = _text("gate_id", fields)
    version = _given("gate_version", fields)
    # The exact type: True is an int to Python and a different question here.
    if type(version) is not int or not 1 <= version <= MAX_SAFE_INTEGER:
        raise ValueError("gate_version is not a whole number from 1 to 2^53-1.")
    decision_text = _text("decision_text", fields)
    response_schema = _object("response_schema", _given("response_schema", fields))
    question = {
        "gateId": gate_id,
        "gateVersion": version,
        "decisionText": decision_text,
        "responseSchema": response_schema,
        "input": _json("input", _given("input", fields)),
    }
    digest = digest_hex(question)
    wire = frozen_object(
        "The request",
        {
            "requestId": f"{gate_id}#{version}#{digest}",
            "gateId": gate_id,
            "gateVersion": version,
            "digest": digest,
            "decisionText": decision_text,
            "responseSchema": response_schema,
            "input": question["input"],
            "presentation": _object("presentation", fields.get("presentation", {})),
        },
    )
    _made[id(wire)] = wire
    return _read(wire)


# Wire forms of requests by their identity, as long as they live.
_made: Final[WeakValueDictionary[int, FrozenDict]] = WeakValueDictionary()


def _read(wire: FrozenDict) -> CallbackRequest:
    """The request with this wire form, which is known to be that of one."""
    given = {name: wire[spelling] for spelling, name in _REQUEST_FIELDS.items()}
    request = CallbackRequest(**cast(dict[str, Any], given))
    object.__setattr__(request, "_wire", wire)
    return request


def _given(name: str, fields: Mapping[str, object]) -> object:
    if name not in fields:
        raise ValueError(f"{name} is missing from the gate definition.")
    return fields[name]


def _text(name: str, fields: Mapping[str, object]) -> str:
    value = _json(name, _given(name, fields))
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is not a non-empty text.")
    return value


def _object(name: str, value: object) -> Mapping[str, JSONValue]:
    return frozen_object(name, _json(name, value))


def _json(name: str, value: object) -> JSONValue:
    try:
        return snapshot(value, max_depth=MAX_DEFINITION_DEPTH)
    except JsonValueError as error:
        raise JsonValueError(error.reason, f"/{_WIRE_NAMES[name]}{error.path}") from None
