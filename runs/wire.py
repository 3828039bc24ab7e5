"""Rows as they go over the wire: camelCase, times in RFC 3339 with milliseconds, in UTC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from runs import admission
from runs.admission import Place
from runs.kernel.events import Event, EventKind
from runs.kernel.masking import mask_requests
from runs.kernel.moments import moment
from runs.models import Event as EventRow
from runs.models import Run, Workflow
from runs.turns import folding

Wire = dict[str, Any]


def time(at: datetime | None) -> str | None:
    """A moment, such as `2026-01-01T00:00:00.000Z`."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def address(path: str) -> str:
    """A path of this site as an address that works from anywhere."""
    return f"{settings.OBVERSA_BASE_URL}{path}"


def run(row: Run) -> Wire:
    """A run as programs see it."""
    return runs([row])[0]


def runs(rows: Sequence[Run]) -> list[Wire]:
    """Several runs as programs see them."""
    places = admission.places_of(rows)
    return [_run(row, places.get(row.pk, [])) for row in rows]


def _run(row: Run, places: Sequence[Place]) -> Wire:
    return {
        "id": str(row.pk),
        "workflow": row.workflow,
        "title": row.title,
        "kind": row.kind,
        "status": row.status,
        "displayStatus": row.display_status,
        "waitingOn": row.waiting_on,
        "heldReason": row.held_reason,
        "outcome": mask_requests(row.outcome),
        "overridden": row.overridden,
        "params": row.params,
        "labels": row.labels,
        "stream": row.stream,
        "conversation": row.conversation,
        "startedBy": row.started_by,
        "rerunOf": None if row.rerun_of_id is None else str(row.rerun_of_id),
        "priority": row.priority,
        # The longest of the lines it stands in comes first.
        "queuePosition": places[0].position if places else None,
        "queuedFor": [
            {
                "kind": place.kind,
                "name": place.name,
                "limit": place.limit,
                "position": place.position,
            }
            for place in places
        ],
        "progress": {"done": row.done_count, "total": row.total_count},
        "lastSeq": row.last_seq,
        "createdAt": time(row.created_at),
        "startedAt": time(row.started_at),
        "endedAt": time(row.ended_at),
        "cancelRequestedAt": time(row.cancel_requested_at),
        "archivedAt": time(row.archived_at),
        "archive": None
        if row.archived_at is None
        else {
            "file": row.archive_name,
            "digest": row.archive_digest,
            "size": row.archive_size,
        },
        "url": address(row.get_absolute_url()),
    }


def event(row: EventRow | Event) -> Wire:
    """A fact of the record: its envelope, and the fields of its kind beside it.

    Nobody knows here who reads: what a question declares sensitive is masked.
    """
    told: Wire = mask_requests(whole_event(row))
    return told


def whole_event(row: EventRow | Event) -> Wire:
    """The same with what a question declares sensitive, for those who may read it."""
    fact = folding.to_event(row) if isinstance(row, EventRow) else row
    return {
        "seq": fact.seq,
        "kind": str(fact.kind),
        "path": list(fact.path),
        "ts": time(moment(fact.ts)),
        "actor": fact.actor,
        "surface": fact.surface,
        **_own_fields(fact),
    }


_ENVELOPE = frozenset({"seq", "kind", "path", "ts", "actor", "surface"})


def _own_fields(fact: Event) -> Mapping[str, Any]:
    # The record holds which event made a claim where the seeds have its token; neither is told.
    hidden = _ENVELOPE | {"claimToken"} if fact.kind == EventKind.CLAIMED else _ENVELOPE
    return {name: value for name, value in fact.fields.items() if name not in hidden}


def workflow(row: Workflow) -> Wire:
    """An entry of the catalogue; `error` stands there only for a file that does not import."""
    told = {
        "name": row.name,
        "title": row.title,
        "description": row.description,
        "params": row.params_schema,
        "audience": row.audience.spec,
    }
    return {**told, "error": row.error} if row.error else told
