"""A run from a file that `exports` wrote: the same events, folding to the same state."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import DataError, IntegrityError

from runs import record
from runs.archive import exports, portable
from runs.archive.portable import RecordRefused
from runs.archive.rebuild import rebuild
from runs.kernel.events import Event, EventKind
from runs.kernel.graph import Shape, leaf_count, shape_from_json, shape_identity
from runs.kernel.jsonable import digest_hex, snapshot
from runs.kernel.moments import moment
from runs.kernel.state import RunState, fold
from runs.models import Definition, Run
from runs.people.audiences import AudienceRefused, audience_for
from runs.report.verifying import follow_export
from runs.turns import headline

# What events that are none do to those who read them.
_NO_RECORD: Final = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    AssertionError,
    OverflowError,
    RecursionError,
    DataError,
    IntegrityError,
)
_TEXTS: Final[Mapping[str, int]] = {
    "workflow": 200,
    "title": 300,
    "stream": 200,
    "conversation": 200,
    "startedBy": 200,
}
# A run in one of these is at work somewhere; a second copy of it would do the work again.
_AT_WORK: Final = frozenset({Run.Status.QUEUED, Run.Status.RUNNING, Run.Status.RETRY_PENDING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A file that was read and checked, and not written yet."""

    id: UUID
    row: Mapping[str, Any]
    events: Sequence[Event]
    state: RunState
    shape: Shape | None
    created_at: datetime


def import_run(lines: Sequence[Mapping[str, Any]], *, other_people: bool = False) -> Run:
    """Write the run of a file's lines; raises RecordRefused for a file that is not whole.

    It keeps its id unless a run here has it. `other_people` lets in a record whose numbers of
    people mean somebody else here.
    """
    found = read(lines)
    if not other_people:
        _same_people(found, lines[0])
    _at_rest(found)
    stream = found.row["stream"]
    if found.row["kind"] == Run.Kind.EXTERNAL and Run.objects.filter(stream=stream).exists():
        raise RecordRefused(f"The stream {stream!r} is here already; a stream is one run.")
    run = _row(found)
    try:
        with record.restored(run, found.events):
            rebuild(run.pk)
            _end_grants(run, found.events)
    except _NO_RECORD as error:
        raise RecordRefused(f"Its events make no run: {error!r}.") from error
    run.refresh_from_db()
    return run


def _end_grants(run: Run, events: Sequence[Event]) -> None:
    """What somebody allowed elsewhere lets nothing run here: a file is nobody's word."""
    ended = {event.fields["grantId"] for event in events if event.kind == EventKind.GRANT_REVOKED}
    given = [event.fields["grantId"] for event in events if event.kind == EventKind.GRANT_ISSUED]
    if not set(given) - ended:
        return
    with record.turn(run.pk, actor="system", surface="command") as turn:
        for grant in given:
            if grant not in ended:
                turn.append(EventKind.GRANT_REVOKED, (), {"grantId": grant, "revokedBy": "import"})


def read(lines: Sequence[Mapping[str, Any]]) -> Imported:
    """Check a file's lines: the header, the number of events, their order and their digest."""
    header = lines[0] if lines else {}
    row = header.get("run")
    if header.get("kind") != portable.HEADER or not isinstance(row, Mapping):
        raise RecordRefused("It does not begin with the header of an exported record.")
    if header.get("format") != portable.FORMAT:
        raise RecordRefused(f"It has format {header.get('format')!r}, not {portable.FORMAT}.")
    if len(lines) - 1 != header.get("events"):
        raise RecordRefused(
            f"It is torn: {len(lines) - 1} of {header.get('events')!r} events are there."
        )
    events = [_event(line, seq) for seq, line in enumerate(lines[1:], 1)]
    try:
        digest = portable.digest_of(portable.lines_of(events))
        state = fold(events)
        run_id, created = UUID(str(row.get("id"))), moment(int(row["createdAt"]))
    except _NO_RECORD as error:
        raise RecordRefused(f"It is no record of a run: {error!r}.") from error
    if digest != header.get("digest"):
        raise RecordRefused("Its events do not have the digest its header names.")
    if "hashes" in header and not (found := follow_export(header, events)).ok:
        raise RecordRefused(f"Its events do not fit its chain. {found.text}")
    shape = _shape(row, events)
    _check_row(row)
    return Imported(id=run_id, row=row, events=events, state=state, shape=shape, created_at=created)


def _event(line: Mapping[str, Any], seq: int) -> Event:
    try:
        event = portable.from_line(line)
    except RecordRefused as error:
        raise RecordRefused(f"Event {seq} is none: {error}") from error
    if event.seq != seq:
        raise RecordRefused(f"Event {seq} has the number {event.seq}: one is missing or doubled.")
    return event


def _shape(row: Mapping[str, Any], events: Sequence[Event]) -> Shape | None:
    given: Any = row.get("definition")
    if given is None and row.get("kind") == Run.Kind.EXTERNAL:
        return None
    try:
        wire = snapshot(given["shape"])
        assert isinstance(wire, dict)
        shape = shape_from_json(wire)
        identity = shape_identity(shape)
    except _NO_RECORD as error:
        raise RecordRefused("Its definition is no shape of a workflow.") from error
    starts = [event.fields for event in events if event.kind == EventKind.RUN_START]
    named = {fields["definition"] for fields in starts if "definition" in fields}
    if given.get("identity") != identity or named - {digest_hex(wire)}:
        raise RecordRefused("Its definition is not the one its record names.")
    return shape


def _check_row(row: Mapping[str, Any]) -> None:
    for name, longest in _TEXTS.items():
        text = row.get(name)
        if not isinstance(text, str) or len(text) > longest or "\0" in text:
            raise RecordRefused(f"Its {name} is no text of at most {longest} characters.")
    if row.get("kind") not in Run.Kind.values:
        raise RecordRefused(f"Its kind {row.get('kind')!r} is none.")
    for name in ("labels", "params", "audience"):
        if not isinstance(row.get(name), Mapping):
            raise RecordRefused(f"Its {name} is no object.")


def _same_people(found: Imported, header: Mapping[str, Any]) -> None:
    """The record names people by number; here the numbers must not mean somebody else."""
    there = header.get("people")
    there = there if isinstance(there, Mapping) else {}
    actors = {event.actor for event in found.events} | {found.row["startedBy"]}
    here = exports.people_of(actors)
    for actor, name in here.items():
        if there.get(actor) != name:
            raise RecordRefused(
                f"{actor} is {there.get(actor) or 'nobody'} in the record and {name} here."
            )


def _at_rest(found: Imported) -> None:
    status, _ = headline.run_status(found.shape, found.state)
    if found.shape is not None and status in _AT_WORK:
        raise RecordRefused(
            "Its run was at work when it was exported. Export it when it waits or has ended."
        )


def _row(found: Imported) -> Run:
    row, shape = found.row, found.shape
    taken = Run.objects.filter(pk=found.id).exists()
    before = row.get("rerunOf")
    try:
        audience = audience_for(row["audience"])
        earlier = None if before is None else Run.objects.filter(pk=UUID(str(before))).first()
    except (AudienceRefused, ValueError) as error:
        raise RecordRefused(str(error)) from error
    return Run(
        pk=uuid.uuid4() if taken else found.id,
        kind=row["kind"],
        workflow=row["workflow"],
        title=row["title"],
        stream=row["stream"],
        conversation=row["conversation"],
        labels=row["labels"],
        params=row["params"],
        audience=audience,
        started_by=row["startedBy"],
        rerun_of=earlier,
        definition=None if shape is None else _definition(row["definition"]["shape"], shape),
        total_count=0 if shape is None else leaf_count(shape),
        last_seq=len(found.events),
        created_at=found.created_at,
        changed_at=found.created_at,
    )


def _definition(wire: Mapping[str, Any], shape: Shape) -> Definition:
    definition, _ = Definition.objects.get_or_create(
        digest=digest_hex(wire), defaults={"identity": shape_identity(shape), "shape": wire}
    )
    return definition
