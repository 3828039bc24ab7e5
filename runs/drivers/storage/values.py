"""What may go into a store: the checks of names, times, envelopes and limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from runs.drivers.errors import StorageError
from runs.kernel.jsonable import (
    MAX_SAFE_INTEGER,
    FrozenDict,
    JSONValue,
    JsonValueError,
    digest_hex,
    snapshot,
)

STORAGE_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
# The white space of ECMAScript, which is neither Python's nor Unicode's own list.
_BLANKS: Final = "\t\v\f \u00a0\ufeff\n\r\u2028\u2029\u1680\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NEW_EVENT: Final = (
    "eventId",
    "type",
    "version",
    "timestamp",
    "correlationId",
    "causationId",
    "payload",
)
_LITERALS: Final[Mapping[str, Any]] = {
    "schemaVersion": 1,
    "retention": "until-run-delete",
    "sensitiveContent": {
        "marked": "reject",
        "exact": "reject",
        "freeText": "redact-before-hash",
    },
}


def refused(message: str, path: str) -> StorageError:
    """The error for a value no store takes."""
    return StorageError("INVALID_STORED_VALUE", message, path=path)


def storage_id(value: object, path: str) -> str:
    """A name that a stream, a run or a namespace may have (graph.md K15)."""
    if not isinstance(value, str) or not STORAGE_ID.match(value):
        raise refused(f"{value!r:.80} is no storage id.", path)
    return value


def domain_event_id(value: object, path: str) -> str:
    """A trimmed text without control characters, at most 256 bytes (graph.md K57)."""
    if not isinstance(value, str) or not value or is_untidy(value):
        raise refused("the id is empty, not trimmed, or holds a control character.", path)
    if len(value.encode("utf-8", "surrogatepass")) > 256:
        raise refused("the id is longer than 256 bytes.", path)
    return value


def is_untidy(text: str) -> bool:
    """Whether a text has white space at its ends or a control character (graph.md K13, K14)."""
    return text.strip(_BLANKS) != text or _CONTROL.search(text) is not None


def revision(value: object, path: str, *, least: int) -> int:
    """A whole number from `least` to 2^53-1."""
    if type(value) is not int or not least <= value <= MAX_SAFE_INTEGER:
        raise refused(f"{value!r:.80} is no revision.", path)
    return value


def timestamp(value: object, path: str) -> str:
    """A real instant, written with milliseconds and Z (graph.md K58)."""
    if not isinstance(value, str) or not _TIMESTAMP.match(value):
        raise refused(f"{value!r:.80} is no time of the form 2026-01-31T12:00:00.000Z.", path)
    try:
        datetime.fromisoformat(value)
    except ValueError:
        raise refused(f"{value} is no time there ever is.", path) from None
    return value


def now() -> str:
    """The present instant in the form of a timestamp."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def exactly(value: object, names: Sequence[str], path: str) -> FrozenDict:
    """A JSON object with these fields and no other."""
    try:
        frozen = snapshot(value)
    except JsonValueError as error:
        raise refused(error.reason, f"{path}{error.path}") from error
    if not isinstance(frozen, FrozenDict) or set(frozen) != set(names):
        raise refused(f"this is no object of {', '.join(names)} alone.", path)
    return frozen


def stream_of(value: object) -> tuple[str, str]:
    """Namespace and stream id of a stream reference (graph.md K59)."""
    found = exactly(value, ("namespace", "streamId"), "/stream")
    namespace = storage_id(found["namespace"], "/stream/namespace")
    return namespace, storage_id(found["streamId"], "/stream/streamId")


def new_events(value: object) -> list[FrozenDict]:
    """The events of a batch, copied and checked (graph.md K56, K61)."""
    if not isinstance(value, list | tuple) or not value:
        raise refused("a batch holds at least one event.", "/events")
    return [_new_event(event, f"/events/{index}") for index, event in enumerate(value)]


def _new_event(value: object, path: str) -> FrozenDict:
    event = exactly(value, _NEW_EVENT, path)
    for name in ("eventId", "type", "correlationId"):
        domain_event_id(event[name], f"{path}/{name}")
    if event["causationId"] is not None:
        domain_event_id(event["causationId"], f"{path}/causationId")
    revision(event["version"], f"{path}/version", least=1)
    timestamp(event["timestamp"], f"{path}/timestamp")
    return event


def enveloped(event: Mapping[str, JSONValue], stream_id: str, number: int) -> dict[str, JSONValue]:
    """The event as it is stored."""
    return {"envelopeVersion": 1, "streamId": stream_id, "revision": number, **event}


def checked_envelope(value: object, stream_id: str, number: int) -> FrozenDict:
    """A stored envelope that stands at its place; raises for one that does not."""
    envelope = exactly(value, ("envelopeVersion", "streamId", "revision", *_NEW_EVENT), "")
    if envelope["envelopeVersion"] != 1:
        raise StorageError("UNSUPPORTED_ENVELOPE_VERSION", "the envelope is of another version.")
    if envelope["streamId"] != stream_id or envelope["revision"] != number:
        raise refused("the envelope belongs elsewhere.", "/revision")
    _new_event({name: envelope[name] for name in _NEW_EVENT}, "")
    return envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a store takes; every stream and run is bound to those it began under."""

    max_event_payload_bytes: int = 262_144
    max_append_batch_bytes: int = 1_048_576
    max_artifact_bytes: int = 1_048_576
    max_total_artifact_bytes_per_run: int = 16_777_216

    @classmethod
    def from_policy(cls, policy: Mapping[str, Any] | None) -> Limits:
        """Read a policy (graph.md K50); None gives the defaults."""
        if policy is None:
            return cls()
        found = exactly(policy, [*_LITERALS, *_LIMIT_NAMES.values()], "/policy")
        for name, literal in _LITERALS.items():
            if found[name] != literal:
                raise refused(f"{name} has one legal value only.", f"/policy/{name}")
        given: dict[str, Any] = {name: found[wire] for name, wire in _LIMIT_NAMES.items()}
        for name, wire in _LIMIT_NAMES.items():
            revision(given[name], f"/policy/{wire}", least=1)
        limits = cls(**given)
        if limits.max_append_batch_bytes < limits.max_event_payload_bytes:
            raise refused("a batch holds at least one payload.", "/policy/maxAppendBatchBytes")
        if limits.max_total_artifact_bytes_per_run < limits.max_artifact_bytes:
            path = "/policy/maxTotalArtifactBytesPerRun"
            raise refused("a run holds at least one artifact.", path)
        return limits

    def policy(self) -> dict[str, JSONValue]:
        """The policy in the form it is stored in."""
        return {**_LITERALS, **self._wire(*_LIMIT_NAMES)}

    @property
    def of_events(self) -> dict[str, JSONValue]:
        return self._wire("max_event_payload_bytes", "max_append_batch_bytes")

    @property
    def of_artifacts(self) -> dict[str, JSONValue]:
        return self._wire("max_artifact_bytes", "max_total_artifact_bytes_per_run")

    def _wire(self, *names: str) -> dict[str, JSONValue]:
        return {_LIMIT_NAMES[name]: getattr(self, name) for name in names}


_LIMIT_NAMES: Final = {
    "max_event_payload_bytes": "maxEventPayloadBytes",
    "max_append_batch_bytes": "maxAppendBatchBytes",
    "max_artifact_bytes": "maxArtifactBytes",
    "max_total_artifact_bytes_per_run": "maxTotalArtifactBytesPerRun",
}


def policy_digest(limits: Mapping[str, JSONValue]) -> str:
    """What names the limits a stream or a run was begun under (graph.md K86)."""
    return f"sha256:{digest_hex({'schemaVersion': 1, **limits})}"
