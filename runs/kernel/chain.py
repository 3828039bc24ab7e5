"""The events of a run as a chain: each hash covers the event and the hash before it.

The hash of an event is the SHA-256 of the canonical text of `{"previous": <hash>, "event":
{seq, kind, ts, path, actor, surface, key, fields}}`, as 64 hex digits; the first follows START.
Whoever changes one event and leaves the rest breaks the chain at that event.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from runs.kernel.events import Event
from runs.kernel.jsonable import MAX_DEPTH, canonical_json, thaw
from runs.kernel.plain import in_order, is_plain

START: Final = ""
_PARTS: Final = frozenset({"seq", "kind", "ts", "path", "actor", "surface", "key", "fields"})
_ROOM: Final = MAX_DEPTH + 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What following a chain came to; `seq` is the first event that does not fit, when one does."""

    ok: bool
    text: str
    count: int = 0
    head: str = START
    seq: int | None = None


def event_json(event: Event) -> dict[str, Any]:
    """Everything of an event that its hash covers."""
    return {
        "seq": event.seq,
        "kind": str(event.kind),
        "ts": event.ts,
        "path": list(event.path),
        "actor": event.actor,
        "surface": event.surface,
        "key": event.key,
        "fields": event.fields,
    }


def event_from_json(value: object) -> Event:
    """The event that `event_json` wrote; raises ValueError for anything else."""
    if not isinstance(value, Mapping) or set(value) != _PARTS:
        raise ValueError(f"An event has exactly {', '.join(sorted(_PARTS))}.")
    given = thaw(dict(value))
    if not isinstance(given["path"], list) or not isinstance(given["fields"], dict):
        raise ValueError("An event has a list as its path and an object as its fields.")  # noqa: TRY004 - the contract's error
    return Event(**{**given, "path": tuple(given["path"])})


def next_hash(previous: str, event: Event) -> str:
    """The hash of the event that follows the one with the hash `previous`."""
    text = _canonical({"previous": previous, "event": event_json(event)})
    return hashlib.sha256(text.encode()).hexdigest()


def hashes(events: Iterable[Event], previous: str = START) -> Iterator[str]:
    """The hash of each event in turn."""
    for event in events:
        previous = next_hash(previous, event)
        yield previous


def follow(events: Iterable[tuple[Event, str]]) -> Verdict:
    """Compare each event with the hash that was kept of it; "" where none was.

    Events recorded before there were hashes come first and have none: the first hash after them
    covers them all. Once an event has one, every later event has.
    """
    head, count, unkept = START, 0, 0
    for event, kept in events:
        wanted = count + 1
        if event.seq != wanted:
            return _broken(wanted, f"Event {wanted} is missing or out of its place.", count, head)
        before, head = head, next_hash(head, event)
        if not kept and unkept == count:
            count = unkept = wanted
            continue
        if kept != head:
            return _broken(*_where(wanted, unkept), count, before)
        count = wanted
    if unkept and unkept == count:
        text = f"No hash was kept of any of its {count} events: there is nothing to compare with."
        return Verdict(ok=False, text=text, count=count, head=head)
    return Verdict(ok=True, text=f"All {count} events fit the chain.", count=count, head=head)


def _where(seq: int, unkept: int) -> tuple[int, str]:
    if unkept and seq == unkept + 1:
        return 1, f"One of the events 1 to {seq} was altered; before {seq} no hashes were kept."
    return seq, f"Event {seq} was altered, or does not follow the one before it."


def _broken(seq: int, text: str, count: int, head: str) -> Verdict:
    return Verdict(ok=False, text=text, count=count, head=head, seq=seq)


def _canonical(value: Any) -> str:
    """The canonical text; what holds an event nests deeper than the event's own fields may."""
    return in_order(value) if is_plain(value, _ROOM) else canonical_json(value)
