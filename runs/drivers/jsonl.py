"""A record as a file: one event per line, appended the moment it happens (runs.md section 13).

A line is handed to the system at once, so a killed process loses none. It is forced to the disk
before a step begins, when a session starts or ends, and with every fact about a question; what
lies between goes with the next of those. A write that fails does not fail the run (R223): its
bytes are kept and go first with the next write, so that the file is always a beginning of what
happened and never has a hole.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from runs.drivers.errors import RunBusy
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind
from runs.kernel.jsonable import JsonValueError, parse_json

logger = logging.getLogger(__name__)

# Streamed text is for those who watch; the record keeps what it came to (R216).
STREAMED: Final = frozenset({EventKind.ENGINE_TEXT, EventKind.ENGINE_THINKING})
_FORCED: Final = CALLBACK_KINDS | {
    EventKind.RUN_START,
    EventKind.RUN_END,
    EventKind.RUN_ABORT,
    EventKind.JOB_START,
}
_ENVELOPE: Final = frozenset({"kind", "ts", "path"})
Shorten = Callable[[Event], Event]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a file holds: its events, numbered from 1 in their order, and lines that are none.

    `session_count` is the number of the last session in it, 0 for an empty file.
    """

    events: tuple[Event, ...] = ()
    session_count: int = 0
    unreadable_count: int = 0


def read_record(path: str | os.PathLike[str]) -> Record:
    """Read a record; blank lines are skipped, lines that hold no event are counted (R222)."""
    return _parsed(Path(path).read_bytes())


def _parsed(content: bytes) -> Record:
    events: list[Event] = []
    sessions, unreadable = 0, 0
    for line in _lines(content):
        wire = _wire(line)
        if wire is None:
            unreadable += 1
            continue
        sessions = max(sessions, _session(wire))
        events.append(_event(wire, seq=len(events) + 1))
    return Record(events=tuple(events), session_count=sessions, unreadable_count=unreadable)


def _lines(content: bytes) -> Iterator[bytes]:
    return (line for line in content.split(b"\n") if line.strip())


def _wire(line: bytes) -> dict[str, Any] | None:
    try:
        found = parse_json(line)
    except JsonValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("kind"), str):
        return None
    path = found.get("path", [])
    if not isinstance(path, list) or not all(isinstance(name, str) for name in path):
        return None
    return found


def _session(wire: dict[str, Any]) -> int:
    number = wire.get("session", 1)
    return number if isinstance(number, int) and not isinstance(number, bool) else 1


def _event(wire: dict[str, Any], *, seq: int) -> Event:
    kind, ts = str(wire["kind"]), wire.get("ts", 0)
    gone = _ENVELOPE if kind == EventKind.RUN_START else _ENVELOPE | {"session"}
    fields = {key: value for key, value in wire.items() if key not in gone}
    at = int(ts) if isinstance(ts, int | float) else 0
    return Event(kind, tuple(wire.get("path", ())), fields, seq=seq, ts=at)


class RecordFile:
    """The record of one live session: it holds the file's lock until it is closed (R226)."""

    def __init__(self, path: Path, handle: int, past: Record, shorten: Shorten | None) -> None:
        self.path = path
        self.past = past
        self.session = past.session_count + 1
        self._handle = handle
        self._shorten = shorten
        self._unwritten = b""
        self._failing = False

    @classmethod
    def open(cls, path: Path, *, resume: bool = False, shorten: Shorten | None = None) -> Self:
        """Take the file for a session: emptied, or with `resume` as it is (R217).

        Raises RunBusy while another session holds it, and OSError when it cannot be opened.
        `shorten` changes each event on its way into the file (R219).
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY
        handle = os.open(path, flags, 0o666)
        try:
            _lock(handle, path)
            # Emptied only once it is ours: another session's lines are not ours to drop.
            past = _parsed(path.read_bytes()) if resume else Record()
            if not resume:
                os.ftruncate(handle, 0)
        except BaseException:
            os.close(handle)
            raise
        opened = cls(path, handle, past, shorten)
        if resume:
            opened._mend()
        return opened

    def write(self, event: Event) -> None:
        """Append one event; it never raises (R223)."""
        if event.kind in STREAMED or self._handle < 0:
            return
        if self._shorten is not None:
            event = self._shorten(event)
        self._unwritten += _line(event, self.session)
        self._flush(force=event.kind in _FORCED)

    def close(self) -> None:
        """Write what is left and give the record free."""
        if self._handle < 0:
            return
        self._flush(force=True)
        handle, self._handle = self._handle, -1
        os.close(handle)

    def _mend(self) -> None:
        """Let the next line begin a line of its own, whatever a crash tore off (R222)."""
        size = os.fstat(self._handle).st_size
        if size and os.pread(self._handle, 1, size - 1) != b"\n":
            self._unwritten = b"\n"

    def _flush(self, *, force: bool) -> None:
        try:
            while self._unwritten:
                written = os.write(self._handle, self._unwritten)
                self._unwritten = self._unwritten[written:]
            if force:
                os.fsync(self._handle)
        except OSError as error:
            if not self._failing:
                logger.error("record not written path=%s error=%s", self.path, error)  # noqa: TRY400 - the run goes on, and a trace says no more than the error
            self._failing = True
        else:
            self._failing = False


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = f"{path} is held by another live session. Wait until it ends."
        raise RunBusy(text) from None


def _line(event: Event, session: int) -> bytes:
    wire = {**event.to_wire(), "session": session}
    if "claimToken" in wire:
        # Whoever holds the token holds the question: the token is the claimer's alone.
        wire["claimToken"] = "[left out]"
    # A name from outside may hold half a character, which only an escape can carry.
    try:
        text = json.dumps(wire, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        text = json.dumps(wire, separators=(",", ":")).encode()
    return text + b"\n"
