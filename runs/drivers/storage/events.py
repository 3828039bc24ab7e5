"""The event store of one machine: every batch is a file of its own (graph.md sections 7 and 9).

The name of a batch's file is the revision it begins with, so two writers at one revision want
the same name and one of them gets it. A batch is there as a whole or not at all, and a crash
leaves nothing torn.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from runs.drivers.errors import StorageError
from runs.drivers.storage import files, values
from runs.drivers.storage.known_secrets import KnownSecrets
from runs.kernel.jsonable import (
    MAX_SAFE_INTEGER,
    FrozenDict,
    JSONValue,
    JsonValueError,
    canonical_json,
    parse_json,
)

NAME: Final = "local-jsonl"
_SEGMENT: Final = re.compile(r"(\d{16})\.jsonl\Z")
_FOOTER: Final = (
    "segmentVersion",
    "policyDigest",
    "startRevision",
    "endRevision",
    "eventCount",
    "sha256",
)
_FOOTER_ROOM: Final = 1_024
Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Segment:
    """One committed batch."""

    start: int
    events: tuple[FrozenDict, ...]
    policy: str
    sha256: str

    @property
    def end(self) -> int:
        return self.start + len(self.events) - 1


class LocalEventStore:
    """Streams of events below a folder; several processes may use it at once."""

    def __init__(self, root: Path, limits: values.Limits, secrets: KnownSecrets) -> None:
        self._root = root
        self._limits = limits
        self._secrets = secrets
        self._policy = values.policy_digest(limits.of_events)
        self._lock = threading.Lock()
        # A segment never changes; one whose file looks the same is not read again.
        self._read: dict[Path, tuple[Stamp, Segment]] = {}

    def preflight_append(self, stream: object, expected: object, events: object) -> None:
        """Raise whatever `append` would raise; nothing is written (K60)."""
        namespace, stream_id, at, batch = self._checked(stream, expected, events)
        segments = self._segments(namespace, stream_id)
        head = segments[-1].end if segments else 0
        if head != at:
            raise _conflict(at, head)
        _refuse_known_ids(segments, batch)

    def append(self, stream: object, expected: object, events: object) -> int:
        """Commit a batch at this revision, whole or not at all; the new revision (K61-K67)."""
        namespace, stream_id, at, batch = self._checked(stream, expected, events)
        content, digest = self._content(stream_id, at, batch)
        segments = self._segments(namespace, stream_id)
        head = segments[-1].end if segments else 0
        if at < head:
            return _same_again(segments, at, head, digest)
        if at > head:
            raise _conflict(at, head)
        _refuse_known_ids(segments, batch)
        stream_names = self._names(namespace, stream_id)
        folder = files.folder(self._root, *stream_names, "segments", make=True)
        scratch = files.folder(self._root, *stream_names, ".tmp", make=True)
        assert folder is not None
        assert scratch is not None
        if files.write_once(folder / f"{at + 1:016d}.jsonl", content, scratch):
            return at + len(batch)
        segments = self._segments(namespace, stream_id)
        return _same_again(segments, at, segments[-1].end if segments else 0, digest)

    def read(self, stream: object, after_revision: object = 0) -> list[FrozenDict]:
        """The envelopes after this revision, in order; none of a stream that is not there."""
        namespace, stream_id = values.stream_of(stream)
        after = values.revision(after_revision, "/afterRevision", least=0)
        found: list[FrozenDict] = []
        for segment in self._segments(namespace, stream_id):
            if segment.end > after:
                found.extend(segment.events[max(0, after + 1 - segment.start) :])
        return found

    # --- a batch ---------------------------------------------------------------------------------

    def _checked(
        self, stream: object, expected: object, events: object
    ) -> tuple[str, str, int, list[FrozenDict]]:
        """Shapes, then sizes, then secrets: each with its own code (K62)."""
        namespace, stream_id = values.stream_of(stream)
        at = values.revision(expected, "/expectedRevision", least=0)
        batch = values.new_events(events)
        if at + len(batch) > MAX_SAFE_INTEGER:
            raise _too_much("the stream would pass its last revision.")
        whole = 0
        for index, event in enumerate(batch):
            if _size(event["payload"]) > self._limits.max_event_payload_bytes:
                raise _too_much(f"the payload of event {index} is too large.")
            whole += _size(values.enveloped(event, stream_id, at + 1 + index)) + 1
        if whole > self._limits.max_append_batch_bytes:
            raise _too_much("the batch is too large.")
        for event in batch:
            self._secrets.refuse_in(event, canonical_json(event).encode())
        return namespace, stream_id, at, batch

    def _content(self, stream_id: str, at: int, batch: Sequence[FrozenDict]) -> tuple[bytes, str]:
        lines = b"".join(
            canonical_json(values.enveloped(event, stream_id, at + 1 + index)).encode() + b"\n"
            for index, event in enumerate(batch)
        )
        digest = hashlib.sha256(lines).hexdigest()
        footer: dict[str, JSONValue] = {
            "segmentVersion": 1,
            "policyDigest": self._policy,
            "startRevision": at + 1,
            "endRevision": at + len(batch),
            "eventCount": len(batch),
            "sha256": digest,
        }
        return lines + canonical_json(footer).encode() + b"\n", digest

    # --- what is there ---------------------------------------------------------------------------

    def _names(self, namespace: str, stream_id: str) -> tuple[str, ...]:
        hashed = files.hashed
        return ("events", "namespaces", hashed(namespace), "streams", hashed(stream_id))

    def _segments(self, namespace: str, stream_id: str) -> list[Segment]:
        folder = files.folder(self._root, *self._names(namespace, stream_id), "segments")
        if folder is None:
            return []
        found: list[Segment] = []
        ids: set[JSONValue] = set()
        for path in sorted(folder.iterdir()):
            segment = self._segment(path, stream_id)
            if segment.start != (found[-1].end + 1 if found else 1):
                raise _corrupt(path, "a revision is missing before it")
            ids.update(event["eventId"] for event in segment.events)
            found.append(segment)
        if len(ids) != sum(len(segment.events) for segment in found):
            raise _corrupt(folder, "an event id is there twice")
        if found and any(segment.policy != self._policy for segment in found):
            raise _other_limits()
        return found

    def _segment(self, path: Path, stream_id: str) -> Segment:
        status = path.lstat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        with self._lock:
            known = self._read.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        content = files.read(path)
        if len(content) > self._limits.max_append_batch_bytes + _FOOTER_ROOM:
            # A stream of other limits is told from one that somebody wrote into.
            end = content[-_FOOTER_ROOM:]
            if b'"policyDigest"' in end and self._policy.encode() not in end:
                raise _other_limits()
            raise _corrupt(path, "it is larger than any batch")
        segment = _parsed(path, content, stream_id)
        with self._lock:
            self._read[path] = (stamp, segment)
        return segment


def _parsed(path: Path, content: bytes, stream_id: str) -> Segment:
    name = _SEGMENT.match(path.name)
    if name is None:
        raise _corrupt(path, "no batch has such a name")
    if not content.endswith(b"\n"):
        raise _corrupt(path, "its end is missing")
    lines = content[:-1].split(b"\n")
    body = b"".join(line + b"\n" for line in lines[:-1])
    start = int(name[1])
    try:
        footer = values.exactly(parse_json(lines[-1]), _FOOTER, "")
        events = tuple(
            values.checked_envelope(parse_json(line), stream_id, start + index)
            for index, line in enumerate(lines[:-1])
        )
    except JsonValueError as error:
        raise _corrupt(path, error.reason) from error
    except StorageError as error:
        if error.code == "UNSUPPORTED_ENVELOPE_VERSION":
            raise
        raise _corrupt(path, error.message) from error
    digest = hashlib.sha256(body).hexdigest()
    told = {key: footer[key] for key in ("segmentVersion", "startRevision", "endRevision")}
    meant = {"segmentVersion": 1, "startRevision": start, "endRevision": start + len(events) - 1}
    if told != meant or footer["eventCount"] != len(events) or footer["sha256"] != digest:
        raise _corrupt(path, "its last line tells of other events")
    return Segment(start, events, str(footer["policyDigest"]), digest)


def _same_again(segments: Sequence[Segment], at: int, head: int, digest: str) -> int:
    """The revision of a batch that was committed before exactly like this (K64)."""
    for segment in segments:
        if segment.start == at + 1 and segment.sha256 == digest:
            return segment.end
    raise _conflict(at, head)


def _refuse_known_ids(segments: Sequence[Segment], batch: Sequence[Mapping[str, Any]]) -> None:
    ids = [event["eventId"] for event in batch]
    known = {event["eventId"] for segment in segments for event in segment.events}
    if len(set(ids)) != len(ids) or known & set(ids):
        raise StorageError("DUPLICATE_EVENT_ID", "an event id is in the stream or the batch twice.")


def _size(value: JSONValue) -> int:
    return len(canonical_json(value).encode())


def _conflict(expected: int, actual: int) -> StorageError:
    text = f"the stream is at revision {actual}, not at {expected}; read it again."
    return StorageError("REVISION_CONFLICT", text, expectedRevision=expected, actualRevision=actual)


def _other_limits() -> StorageError:
    return values.refused("the stream was begun under other limits.", "/policy")


def _too_much(text: str) -> StorageError:
    return StorageError("STORAGE_LIMIT_EXCEEDED", text)


def _corrupt(path: Path, why: str) -> StorageError:
    text = f"{path.name} is not as it was written: {why}."
    return StorageError("CORRUPT_EVENT_STREAM", text, path=str(path))
