"""Keeps the rows of questions in step with each turn, and makes them anew from the record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from gates import columns
from gates.models import Request, Response
from gates.projection import ROW_KINDS, RUN_KINDS, Projection, about, is_closed
from runs import record
from runs.kernel import callbacks
from runs.kernel.events import Event, EventKind
from runs.models import Event as EventRow
from runs.models import Run
from runs.record import Turn
from runs.turns import folding, statements

_FIELDS: Final = tuple(
    field.attname for field in Request._meta.concrete_fields if not field.primary_key
)

_ANSWER: Final = ("actor", "response", "at", "surface", "deputy_for", "overrides")


class RowsDrifted(RuntimeError):
    """A row is not what the record made it; `manage.py rebuild` repairs it."""


def project(turn: Turn) -> None:
    """Bring the run's requests and responses past the events of this turn."""
    asked = {about(event) for event in turn.events if event.kind in ROW_KINDS}
    run_wide = any(_is_about_all(turn, event) for event in turn.events)
    if not asked and not run_wide:
        return
    rows = _rows(turn, asked, run_wide=run_wide)
    before = {row.pk: _values(row) for row in rows}
    projection = Projection(
        turn.run, turn.before.callbacks, closed=is_closed(turn.before), rows=rows
    )
    for event in turn.events:
        projection.apply(event)
    if _write(turn, projection, before):
        turn.inbox_changed = True


def _rows(turn: Turn, asked: set[str], *, run_wide: bool) -> list[Request]:
    """The rows that the events of this turn may change."""
    if run_wide:
        wanted = Q(request_id__in=asked)
        wanted |= Q(status__in=[*Request.OPEN, Request.Status.CANCELLED])
        return list(Request.objects.filter(wanted, run=turn.run))
    known = {columns.request_id(request_id) for request_id in turn.before.callbacks.requests}
    return [row for request_id in asked & known for row in _row(turn, request_id)]


def _row(turn: Turn, request_id: str) -> list[Request]:
    if request_id in turn.seen:
        return [turn.seen[request_id]]
    return statements.rows(Request, run_id=turn.run.pk, request_id=request_id)


def _is_about_all(turn: Turn, event: Event) -> bool:
    """Whether the event opens or closes every question of the run."""
    match event.kind:
        case EventKind.RUN_CANCEL:
            return True
        case EventKind.RUN_START:
            return turn.before.started
        case EventKind.RUN_END:
            return bool(event.fields["outcome"]["status"] == "aborted")
    return False


def _write(turn: Turn, projection: Projection, before: dict[UUID, dict[str, Any]]) -> bool:
    """Store what differs; each row moves from the status it was read with, or not at all."""
    new = [row for row in projection.rows.values() if row.pk not in before]
    turn.writes.insert(Request, [statements.columns_of(row) for row in new])
    changed = False
    for row in projection.rows.values():
        old = before.get(row.pk)
        differing = {} if old is None else _difference(old, row)
        if old is None or not differing:
            continue
        changed = True
        same = {"pk": row.pk, "status": old["status"], "holder": old["holder"]}
        drifted = RowsDrifted(f"{row.request_id} moved under its run. Run `manage.py rebuild`.")
        turn.writes.update(Request, differing, lost=drifted, **same)
    if projection.emptied:
        asked_anew = {"run": turn.run, "request_id__in": projection.emptied}
        Response.objects.filter(request__in=Request.objects.filter(**asked_anew)).delete()
    turn.writes.insert(Response, [statements.columns_of(row) for row in projection.responses])
    return changed or bool(new)


def _values(row: Request) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _FIELDS}


def _difference(old: dict[str, Any], row: Request) -> dict[str, Any]:
    now = _values(row)
    return {name: now[name] for name in _FIELDS if now[name] != old[name]}


def rebuild_requests(run: Run) -> int:
    """Make the run's requests and responses anew from its record; returns how many rows were off.

    Rows keep their primary keys, so links to a question survive.
    """
    with record.turn(run.pk, actor="system", surface="command") as turn:
        projection = Projection(turn.run, callbacks.empty(), closed=False, rows=())
        events = EventRow.objects.filter(run=turn.run, kind__in=[*ROW_KINDS, *RUN_KINDS])
        for row in events.order_by("seq").iterator():
            projection.apply(folding.to_event(row))
        return _replace(turn.run, projection)


def _replace(run: Run, projection: Projection) -> int:
    kept = {row.request_id: row for row in Request.objects.filter(run=run)}
    repaired = 0
    for request_id, made in projection.rows.items():
        old = kept.pop(request_id, None)
        if old is None:
            made.save(force_insert=True)
            repaired += 1
            continue
        made.pk = old.pk
        differing = _difference(_values(old), made)
        if differing:
            Request.objects.filter(pk=old.pk).update(**differing)
            repaired += 1
    repaired += len(kept)
    Request.objects.filter(pk__in=[row.pk for row in kept.values()]).delete()
    return repaired + _replace_responses(run, projection.responses)


def _replace_responses(run: Run, made: Iterable[Response]) -> int:
    wanted = {(response.request.pk, response.seq): response for response in made}
    kept = {(row.request_id, row.seq): row for row in Response.objects.filter(request__run=run)}
    odd = [row.pk for key, row in kept.items() if key not in wanted]
    Response.objects.filter(pk__in=odd).delete()
    repaired = len(odd)
    for key, response in wanted.items():
        old = kept.get(key)
        facts = {name: getattr(response, name) for name in _ANSWER}
        if old is None:
            response.request_id = response.request.pk
            response.save(force_insert=True)
            repaired += 1
        elif any(getattr(old, name) != value for name, value in facts.items()):
            Response.objects.filter(pk=old.pk).update(**facts)
            repaired += 1
    return repaired
