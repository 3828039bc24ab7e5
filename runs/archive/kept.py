"""The record of an archived run, read from the file that holds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from runs.archive import portable
from runs.archive.portable import Line, RecordRefused
from runs.artifacts import store
from runs.artifacts.store import ArtifactChanged, ArtifactMissing
from runs.kernel.events import Event
from runs.kernel.jsonable import JsonValueError, parse_json
from runs.models import Run

# What reading an archive may raise: the file is not there, not whole, or no record.
UNREADABLE: Final = (ArtifactMissing, ArtifactChanged, RecordRefused)


def lines_of(run: Run) -> list[Line]:
    """The lines of the run's file, the header first, all checked by the digest in its row."""
    return parsed(store.checked(run.archive_digest, run.archive_size, alias=store.ARCHIVE))


def parsed(pieces: Iterable[bytes]) -> list[Line]:
    """The objects of a file of JSON lines; raises RecordRefused for a line that holds none."""
    found: list[Line] = []
    for number, text in enumerate(_lines(pieces), 1):
        try:
            line = parse_json(text)
        except JsonValueError as error:
            raise RecordRefused(f"Line {number} is no JSON: {error}") from error
        if not isinstance(line, dict):
            raise RecordRefused(f"Line {number} is no object.")
        found.append(line)
    return found


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        yield rest


def events_of(run: Run) -> Iterator[tuple[Event, str]]:
    """The events of an archived run with the hashes of its header, "" where it has none."""
    header, *lines = lines_of(run)
    hashes: Any = header.get("hashes")
    hashes = hashes if isinstance(hashes, list) else []
    for at, line in enumerate(lines):
        own = hashes[at] if at < len(hashes) else ""
        yield portable.from_line(line), own if isinstance(own, str) else ""
