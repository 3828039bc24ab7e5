"""A million questions within a minute: rows that PostgreSQL copies from a few of each sort.

Rows alone, without their events; nothing here goes through the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import connection, models
from django.utils import timezone

from gates.models import Request, Response
from runs.models import Run
from runs.people.audiences import audience_for

END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC)
AUDIENCES: Final[tuple[Mapping[str, list[str]] | None, ...]] = (
    {"groups": ["Release"]},
    {"groups": ["Release", "Security"]},
    {"groups": ["Security"]},
    {"users": ["bench"]},
    None,
)
# Of the closed ones; what is left over is answered.
ENDS: Final = {"expired": 0.05, "superseded": 0.1, "cancelled": 0.05}
_RUN: Final = {"id": "md5('run' || g)::uuid", "stream": "'bench-' || g"}
SCHEMA: Final = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}},
    "required": ["approved"],
}


def fill(total: int, open_count: int, *, vacuum: bool = True, first: int = 0) -> None:
    """`total` questions of many runs, `open_count` of them open and a tenth of those held.

    Within a transaction nothing can be vacuumed; the planner is told of the rows all the same.
    """
    made = first
    runs = max(2, (total - first) // 100)
    _runs(first, runs)
    sorts = len(AUDIENCES)
    for index, audience in enumerate(AUDIENCES):
        counts = {"pending": open_count * 9 // 10 // sorts, "claimed": open_count // 10 // sorts}
        closed = (total - open_count) // sorts
        counts |= {status: int(closed * share) for status, share in ENDS.items()}
        counts["answered"] = total // sorts - sum(counts.values())
        for status, count in counts.items():
            _copies(_first(index, audience, status, made), made, count, first, runs)
            made += count
    _answers()
    # As autovacuum does within a minute.
    with connection.cursor() as cursor:
        for table in (Request, Response, Run):
            cursor.execute(f"{'VACUUM ' if vacuum else ''}ANALYZE {table._meta.db_table}")


def _runs(first: int, count: int) -> None:
    """Runs `first` and on, each the stream of a program."""
    if Run.objects.filter(stream="bench-0").exists():
        row = Run.objects.get(stream="bench-0")
        _insert(Run, row.pk, first, first + count, _RUN)
        return
    now = timezone.now()
    row = Run(
        kind=Run.Kind.EXTERNAL,
        stream="bench-0",
        audience=audience_for({"keys": ["bench"]}),
        started_by="key:bench",
        created_at=now,
        changed_at=now,
    )
    row.save()
    _insert(Run, row.pk, 1, count, _RUN)


def _first(
    index: int, audience: Mapping[str, list[str]] | None, status: str, number: int
) -> Request:
    """One question of this sort, of which the others are copies."""
    now = timezone.now()
    is_answered = status == "answered"
    row = Request(
        run=Run.objects.get(stream="bench-0"),
        request_id=f"first-{number}",
        gate_id=f"gate-{index}",
        gate_version=1,
        digest="0" * 64,
        decision_text="Approve the release?",
        response_schema=SCHEMA,
        input={"revision": "abc123", "notes": "x" * 200},
        audience=audience_for(audience),
        asked_by="key:bench",
        status=status,
        holder="user:999" if status == "claimed" else "",
        claim_seq=1 if status == "claimed" else None,
        claimed_at=now - timedelta(minutes=5) if status in ("claimed", "answered") else None,
        due_order=END_OF_TIME,
        asked_seq=1,
        created_at=now - timedelta(minutes=20),
        changed_at=now,
        answered_at=now if is_answered else None,
        answered_by="user:999" if is_answered else "",
    )
    row.save()
    return row


def _copies(row: Request, after: int, count: int, first: int, runs: int) -> None:
    """Every seventh is due; they were asked and answered over the last hundred days."""
    ago = "make_interval(secs => (g * 7919 % 8640000))"
    over = {
        "id": "md5('request' || g)::uuid",
        "run_id": f"md5('run' || ({first} + 1 + g % {runs - 1}))::uuid",
        "request_id": "'q' || g || '#1#' || md5('d' || g)",
        "digest": "md5('d' || g) || md5('e' || g)",
        "decision_text": "'Approve release ' || g || '?'",
        "asked_seq": "g",
        "created_at": f"t.created_at - {ago}",
        "changed_at": f"t.changed_at - {ago}",
        "claimed_at": f"t.claimed_at - {ago} - make_interval(secs => g % 600)",
        "answered_at": f"t.answered_at - {ago}",
    }
    if row.status in ("pending", "claimed"):
        due = "now() + make_interval(secs => (g * 7919 % 172800) - 86400)"
        over["due_at"] = f"CASE WHEN g % 7 = 0 THEN {due} END"
        over["due_order"] = f"CASE WHEN g % 7 = 0 THEN {due} ELSE t.due_order END"
    _insert(Request, row.pk, after + 1, after + count - 1, over)


def _insert(
    model: type[models.Model], pk: Any, low: int, high: int, over: Mapping[str, str]
) -> None:
    """Copies of a row, numbered g; `over` has the columns that differ, as SQL of this file."""
    columns = [str(field.column) for field in model._meta.concrete_fields]
    values = [over.get(name, f't."{name}"').replace("%", "%%") for name in columns]
    names = ", ".join(f'"{name}"' for name in columns)
    table = model._meta.db_table
    sql = (
        f'INSERT INTO "{table}" ({names}) SELECT {", ".join(values)} '
        f'FROM "{table}" t, generate_series(%s::bigint, %s::bigint) g WHERE t.id = %s'
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [low, high, pk])


def _answers() -> None:
    """An answer for each question that has one and lacks it."""
    asked = Request.objects.filter(status="answered", responses=None)
    first = asked.order_by("asked_seq")[0]
    assert first.answered_at is not None
    row = Response.objects.create(
        request=first,
        actor=first.answered_by,
        response={"approved": True},
        at=first.answered_at,
        surface="browser",
        seq=1,
    )
    over = {
        "request_id": "r.id",
        "actor": "r.answered_by",
        "at": "r.answered_at",
        "seq": "r.asked_seq",
    }
    columns = [
        str(field.column) for field in Response._meta.concrete_fields if not field.primary_key
    ]
    values = [over.get(name, f't."{name}"') for name in columns]
    names = ", ".join(f'"{name}"' for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO gates_response ({names}) SELECT {', '.join(values)} "
            "FROM gates_response t, gates_request r WHERE t.id = %s AND r.status = 'answered' "
            "ON CONFLICT DO NOTHING",
            [row.pk],
        )
