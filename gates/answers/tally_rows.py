"""How far questions of several people are, for lists."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Count

from gates.models import Request, Response


def counts_of(rows: Sequence[Request]) -> dict[UUID, str]:
    """`1 of 2` for each open question that several people have to answer; one statement at most."""
    shared = [row for row in rows if row.needed > 1 and row.is_open]
    if not shared:
        return {}
    given = Response.objects.filter(request__in=[row.pk for row in shared])
    counts = dict(given.values_list("request").annotate(count=Count("pk")).order_by())
    return {row.pk: f"{counts.get(row.pk, 0)} of {row.needed}" for row in shared}
