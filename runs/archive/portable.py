"""The form in which a run leaves the database and comes back: one JSON object per line.

The first line is a header of the kind `record:export`: what the run's row holds besides its
record, how many events follow, and their digest. Each line after it is one event in the seeds'
shape, with its place in the record beside it (runs.md R216, R220, R224, R225).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from runs.kernel.events import Event, EventKind
from runs.kernel.jsonable import JSONValue, JsonValueError, canonical_json, frozen_object

HEADER: Final = "record:export"
FORMAT: Final = 1
# Where a field of an event has a name that its line uses itself, it stands under this one.
ASIDE: Final = "fields"
_LINE: Final = frozenset({"seq", "kind", "ts", "path", "actor", "surface", "key", "session", ASIDE})
_LONGEST: Final[Mapping[str, int]] = {"kind": 60, "actor": 200, "surface": 20, "key": 300}
_LAST_MS: Final = 253_402_300_799_999  # the end of the year 9999

Line = dict[str, JSONValue]


class RecordRefused(ValueError):
    """The file does not hold a whole record that was exported."""


def lines_of(events: Iterable[Event]) -> Iterator[Line]:
    """The events of a record from its first on, as the lines of a file."""
    session = 1
    for event in events:
        if event.kind == EventKind.RUN_START:
            session = int(event.fields.get("session", 1))
        yield to_line(event, session)


def to_line(event: Event, session: int) -> Line:
    """One event as a line; `from_line` gives exactly this event back."""
    line: Line = {"seq": event.seq, "kind": str(event.kind), "ts": event.ts}
    line |= {"path": list(event.path), "actor": event.actor}
    line |= {name: text for name in ("surface", "key") if (text := getattr(event, name))}
    own = _own(event.kind)
    line["session"] = session
    line |= {name: value for name, value in event.fields.items() if name not in own}
    if aside := {name: value for name, value in event.fields.items() if name in own}:
        line[ASIDE] = aside
    return line


def from_line(line: Mapping[str, Any]) -> Event:
    """The event of a line; raises RecordRefused for a line that is none."""
    seq, ts, path = _count(line.get("seq")), _count(line.get("ts")), line.get("path")
    if seq is None or ts is None or ts > _LAST_MS or not isinstance(path, list | tuple):
        raise RecordRefused("it has no seq, ts and path as an exported event has them.")
    if not all(isinstance(name, str) for name in path):
        raise RecordRefused("its path holds what is no name.")
    texts = {name: line.get(name, "") for name in _LONGEST}
    for name, longest in _LONGEST.items():
        if not isinstance(texts[name], str) or len(texts[name]) > longest or "\0" in texts[name]:
            raise RecordRefused(f"its {name} is no text of at most {longest} characters.")
    if not texts["kind"]:
        raise RecordRefused("it has no kind.")
    aside = line.get(ASIDE, {})
    own = _own(texts["kind"])
    if not isinstance(aside, Mapping) or not own.issuperset(aside):
        raise RecordRefused(f"its {ASIDE} holds what belongs beside it.")
    given = {name: value for name, value in line.items() if name not in own}
    try:
        fields = frozen_object("The event", {**given, **aside})
    except (JsonValueError, ValueError) as error:
        raise RecordRefused(f"it holds what is no JSON: {error}") from error
    return Event(path=tuple(path), fields=fields, seq=seq, ts=ts, **texts)


def digest_of(lines: Iterable[Line]) -> str:
    """The digest of a record: of the canonical text of its lines, each ending in a newline."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(canonical_json(line).encode() + b"\n")
    return f"sha256:{digest.hexdigest()}"


def _own(kind: str) -> frozenset[str]:
    """The names a line uses itself; the session of a start is a field of it too."""
    return _LINE - {"session"} if kind == EventKind.RUN_START else _LINE


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if is_count and isinstance(value, int) else None
