"""Ended runs that leave the database: written to the archive, read back, and only then taken away.

Whatever stops it in between, nothing is lost, and it can begin again: the file has the name of its
bytes, and what it replaces goes in one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from runs import record
from runs.archive import exports, imports, kept, verifying
from runs.archive.portable import RecordRefused
from runs.archive.rebuild import rebuild
from runs.artifacts import store
from runs.kernel.state import fold
from runs.models import Attempt, Run, Step
from runs.turns import whole

logger = logging.getLogger(__name__)

_AT_WORK: Final = (Attempt.Status.READY, Attempt.Status.RUNNING)


class MustStay(Exception):
    """The run cannot go to the archive now; the message says why."""


class NotArchived(LookupError):
    """The run is here; there is nothing to bring back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What another app has of a run: why it must stay, what remains of it, and how it comes back.

    `make` reads the record before the transaction; `leave` gets what it made, inside of it.
    """

    why_stay: Callable[[Run], str]
    make: Callable[[Run], Any]
    leave: Callable[[Run, Any], None]
    come_back: Callable[[Run], None]


_parts: list[Part] = []


def also(part: Part) -> None:
    """Let another app take its rows along."""
    if part not in _parts:
        _parts.append(part)


def parts() -> list[Part]:
    """What the other apps have of runs."""
    return list(_parts)


def ended_before(at: datetime, workflow: str = "") -> QuerySet[Run]:
    """Runs of workflows that ended before this moment and are still here, the oldest first."""
    rows = Run.objects.filter(ended_at__lt=at, archived_at=None, kind=Run.Kind.WORKFLOW)
    if workflow:
        rows = rows.filter(workflow=workflow)
    return rows.order_by("ended_at", "pk")


def why_stay(run: Run) -> str:
    """Why the run must not leave, in words; empty when it may."""
    return "it is in the archive already" if run.archived_at is not None else _why_stay(run)


def _why_stay(run: Run) -> str:
    if run.kind != Run.Kind.WORKFLOW or not run.is_final or run.ended_at is None:
        return "it has not ended"
    if run.attempts.filter(status__in=_AT_WORK).exists():
        return "a step of it is still at work"
    again = run.reruns.filter(ended_at=None).first()
    if again is not None:
        return f"run {again.short} runs it again"
    return next((why for part in _parts if (why := part.why_stay(run))), "")


def archive_run(run_id: UUID, *, other_key: bool = False) -> Run:
    """Move the run's record to the archive; returns its row as it is then.

    `other_key` lets go of a record that was sealed with another secret key than today's. Raises
    MustStay, RecordMoved when somebody else moved it, and what the store raises.
    """
    run = Run.objects.get(pk=run_id)
    _need_leave(run)
    _need_whole(run, other_key=other_key)
    digest, size = store.keep(_bytes_of(run), alias=store.ARCHIVE)
    _read_back(run, digest, size)
    made = [part.make(run) for part in _parts]
    with record.alone():
        whole.leave(run, record.database_now(), digest, size)
        # The row is this transaction's by now; what it looks at cannot change any more.
        run.refresh_from_db()
        if why := _why_stay(run):
            raise MustStay(f"Run {run.short} stays: {why}.")
        for part, what in zip(_parts, made, strict=True):
            part.leave(run, what)
        Step.objects.filter(run=run).delete()
        Attempt.objects.filter(run=run).delete()
        whole.prune(run.pk)
    logger.info("run archived run=%s events=%s digest=%s", run.pk, run.last_seq, digest)
    return run


def _need_leave(run: Run) -> None:
    if why := why_stay(run):
        raise MustStay(f"Run {run.short} stays: {why}.")


def _need_whole(run: Run, *, other_key: bool) -> None:
    """Nothing is thrown away of which it is not certain that it is the record."""
    found = verifying.verify_run(run)
    sealed_before = other_key and found.seq is None and found.head == run.head
    if not found.ok and not sealed_before:
        raise MustStay(f"Run {run.short} stays: its record does not verify. {found.text}")


def _bytes_of(run: Run) -> Iterator[bytes]:
    for line in exports.export_run(run):
        yield line.encode() + b"\n"


def _read_back(run: Run, digest: str, size: int) -> None:
    """Read the file as a restore would, and compare it with what is in the database."""
    lines = kept.parsed(store.checked(digest, size, alias=store.ARCHIVE))
    found = imports.read(lines)
    same = (found.id, len(found.events), lines[0]["head"]) == (run.pk, run.last_seq, run.head)
    if not same or found.state != fold(exports.events_of(run)):
        raise MustStay(f"Run {run.short} stays: its file folds to another state.")


def restore_run(run_id: UUID) -> Run:
    """Bring an archived run back, event by event as it was.

    Raises RecordRefused for a file that is not that run's, NotArchived, RecordMoved, and what the
    store raises. The file stays where it is until the sweep finds that nobody names it.
    """
    run = Run.objects.get(pk=run_id)
    if run.archived_at is None:
        raise NotArchived(f"Run {run.short} is not in the archive.")
    lines = kept.lines_of(run)
    found = imports.read(lines)
    if (found.id, len(found.events), lines[0].get("head")) != (run.pk, run.last_seq, run.head):
        raise RecordRefused(f"The file is not the record of run {run.short}.")
    run.params, run.labels = dict(found.row["params"]), dict(found.row["labels"])
    with record.restored(run, found.events, from_archive=True):
        rebuild(run.pk)
        for part in _parts:
            part.come_back(run)
    run.refresh_from_db()
    logger.info("run restored run=%s events=%s", run.pk, run.last_seq)
    return run
