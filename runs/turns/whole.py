"""Whole records that come into the database or leave it, inside the caller's transaction.

A trigger refuses every deletion of an event (docs/retention.md). It lets go of those of a run only
while a row of `Pruning` names that run, which no other transaction ever sees, and on PostgreSQL
only where the run's own row says that it is archived.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, models

from runs.kernel.moments import moment

if TYPE_CHECKING:
    from runs.kernel.events import Event
    from runs.models import Run


class RecordMoved(RuntimeError):
    """Somebody else moved the run in between."""


class AppendOnly(models.QuerySet[Any]):
    """Events are never updated or deleted (design I8)."""

    def update(self, **kwargs: Any) -> NoReturn:
        raise TypeError("Events are append only.")

    def delete(self) -> NoReturn:
        raise TypeError("Events are append only.")


class Pruning(models.Model):
    """A run whose events this transaction takes away."""

    run = models.UUIDField(primary_key=True, editable=False)

    def __str__(self) -> str:
        return str(self.run)


def insert(run: Run, events: Iterable[Event], hashes: Iterable[str]) -> None:
    """Write the events as they are, with the hashes of their chain."""
    from runs.models import Event as EventRow
    from runs.turns import statements

    rows = (
        EventRow(
            run=run,
            seq=event.seq,
            kind=event.kind,
            path=list(event.path),
            actor=event.actor,
            surface=event.surface,
            at=moment(event.ts),
            key=event.key,
            payload=event.fields,
            hash=own_hash,
        )
        for event, own_hash in zip(events, hashes, strict=True)
    )
    EventRow.objects.bulk_create(rows, batch_size=statements.ROWS_AT_ONCE)


def leave(run: Run, at: datetime, digest: str, size: int) -> None:
    """Say in the run's row where its record is from now on; raises RecordMoved."""
    from runs.models import Run

    same = Run.objects.filter(pk=run.pk, last_seq=run.last_seq, head=run.head, archived_at=None)
    if not same.exclude(ended_at=None).update(
        archived_at=at, archive_digest=digest, archive_size=size, outcome=None, params={}
    ):
        raise RecordMoved(f"Run {run.short} moved while it was archived.")


def prune(run_id: UUID) -> None:
    """Delete the events of a run that has left."""
    from runs.models import Event as EventRow

    Pruning.objects.create(run=run_id)
    # A plain query set: the one of the model refuses, as it should.
    models.QuerySet(EventRow).filter(run_id=run_id)._raw_delete(DEFAULT_DB_ALIAS)
    Pruning.objects.filter(run=run_id).delete()


def begin(run: Run) -> None:
    """Say in the row of an archived run that its record is here again; raises RecordMoved."""
    from runs.models import Run

    if not Run.objects.filter(pk=run.pk, archived_at=run.archived_at).update(
        archived_at=None,
        archive_digest="",
        archive_size=None,
        params=run.params,
        labels=run.labels,
    ):
        raise RecordMoved(f"Run {run.short} is no longer in the archive.")
