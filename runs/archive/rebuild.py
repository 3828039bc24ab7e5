"""Make rows anew from the record, which has everything they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from runs import record
from runs.kernel.events import Event
from runs.kernel.state import fold
from runs.models import Artifact, Run, Step
from runs.models import Event as EventRow
from runs.turns import folding, headline, projection

# Written from the record; what else a run's row holds was given at its start.
RUN_COPIES: Final = (
    "last_seq",
    "changed_at",
    "status",
    "waiting_on",
    "held_reason",
    "outcome",
    "done_count",
    "wake_at",
    "cancel_requested_at",
    "started_at",
    "ended_at",
)
_also: list[Callable[[Run], int]] = []


def also(rebuild_rows: Callable[[Run], int]) -> None:
    """Let another app make its own rows of a run anew; it returns how many were off."""
    if rebuild_rows not in _also:
        _also.append(rebuild_rows)


def rebuild(run_id: UUID) -> int:
    """Make every row of the run anew; returns how many were not what the record says.

    A run in the archive has none to be made.
    """
    if Run.objects.filter(pk=run_id, archived_at__isnull=False).exists():
        return 0
    with record.turn(run_id, surface="command") as turn:
        run, shape = turn.run, turn.shape
        rows = EventRow.objects.filter(run=run).order_by("seq")
        events = [folding.to_event(row) for row in rows.iterator()]
        state = fold(events)
        places = projection.places_of(shape)
        off = _run_row(run, shape, state, events)
        if shape is not None:
            marks = projection.marks_of(events)
            made = projection.step_rows(run.pk, shape, places, places, state, marks)
            off += _replace(Step, run, "path", made)
        off += _replace(Artifact, run, "seq", projection.artifact_rows(run.pk, events))
    return off + sum(rebuild_rows(run) for rebuild_rows in _also)


def _run_row(run: Run, shape: Any, state: Any, events: list[Event]) -> int:
    was = {name: getattr(run, name) for name in RUN_COPIES}
    run.started_at = run.ended_at = run.cancel_requested_at = None
    headline.copy(run, shape, state, events)
    off = [name for name, value in was.items() if getattr(run, name) != value]
    if off:
        run.save(update_fields=off)
    return int(bool(off))


def _replace(
    model: type[Step] | type[Artifact], run: Run, key: str, made: Iterable[Mapping[str, Any]]
) -> int:
    """Update what differs, add what is missing, take away what the record does not know."""
    kept = {str(getattr(row, key)): row for row in model.objects.filter(run=run)}
    names = [field.attname for field in model._meta.concrete_fields if not field.primary_key]
    off = 0
    for row in (model(**columns) for columns in made):
        old = kept.pop(str(getattr(row, key)), None)
        if old is None:
            row.save(force_insert=True)
            off += 1
            continue
        differing = [name for name in names if getattr(old, name) != getattr(row, name)]
        if differing:
            row.pk = old.pk
            row.save(force_update=True, update_fields=differing)
            off += 1
    model.objects.filter(pk__in=[row.pk for row in kept.values()]).delete()
    return off + len(kept)
