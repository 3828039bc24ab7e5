"""A run as a file: its whole record, and what its row holds besides (runs.md R224)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.contrib.auth.models import User

from runs.archive import kept, portable
from runs.kernel import chain
from runs.kernel.events import Event
from runs.kernel.moments import milliseconds
from runs.models import Event as EventRow
from runs.models import Run
from runs.replies import json_text
from runs.turns import folding

PERSON: Final = re.compile(r"user:(\d{1,18})")


def events_of(run: Run) -> Iterator[Event]:
    """The record up to the run's last event, a piece at a time."""
    if run.archived_at is not None:
        return (event for event, _ in kept.events_of(run))
    rows = EventRow.objects.filter(run=run, seq__lte=run.last_seq).order_by("seq")
    return (folding.to_event(row) for row in rows.iterator())


def hashes_of(run: Run) -> list[str]:
    """The chain of the record as it was kept; made anew for events of before there were hashes."""
    rows = EventRow.objects.filter(run=run, seq__lte=run.last_seq).order_by("seq")
    found: list[str] = []
    head = chain.START
    for row in rows.iterator():
        head = row.hash or chain.next_hash(head, folding.to_event(row))
        found.append(head)
    return found


def record_lines(run: Run) -> Iterator[portable.Line]:
    """The events as the file has them, without a header; what readers of records take."""
    return portable.lines_of(events_of(run))


def export_run(run: Run) -> Iterator[str]:
    """The lines of the file. Bytes of artifacts are not in it; their names and digests are."""
    if run.archived_at is not None:
        yield from map(json_text, kept.lines_of(run))
        return
    yield json_text(header_of(run))
    for line in record_lines(run):
        yield json_text(line)


def header_of(run: Run) -> dict[str, Any]:
    """The first line: what an import needs that no event says."""
    definition = run.definition
    hashes = hashes_of(run)
    return {
        "kind": portable.HEADER,
        "ts": milliseconds(run.changed_at),
        "path": [],
        "format": portable.FORMAT,
        "events": run.last_seq,
        "digest": portable.digest_of(record_lines(run)),
        "head": hashes[-1] if hashes else chain.START,
        "hashes": hashes,
        "run": {
            "id": str(run.pk),
            "kind": run.kind,
            "workflow": run.workflow,
            "title": run.title,
            "stream": run.stream,
            "conversation": run.conversation,
            "labels": run.labels,
            "params": run.params,
            "audience": run.audience.spec,
            "startedBy": run.started_by,
            "createdAt": milliseconds(run.created_at),
            "rerunOf": None if run.rerun_of_id is None else str(run.rerun_of_id),
            "definition": None
            if definition is None
            else {"identity": definition.identity, "shape": definition.shape},
        },
        "people": people_of(actors_of(run)),
    }


def actors_of(run: Run) -> set[str]:
    """Everybody the record names as one who did something."""
    found = EventRow.objects.filter(run=run).order_by().values_list("actor", flat=True).distinct()
    return {run.started_by, *found}


def people_of(actors: Iterable[str]) -> dict[str, str]:
    """The user names of the people among these actors, as this database has them."""
    keys = [int(match[1]) for actor in actors if (match := PERSON.fullmatch(actor))]
    names = User.objects.filter(pk__in=keys).order_by("pk").values_list("pk", "username")
    return {f"user:{key}": name for key, name in names}
