"""What a start has to know of its workflow and of whoever starts it, read at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.db import connection

from runs.fields import read_stored
from runs.turns.admission import TEAM, WORKFLOW
from runs.turns.clock import Clock, moment_of

_COLUMNS: Final = (
    "name",
    "title",
    "params_schema",
    "audience_id",
    "definition_id",
    "priority",
    "teams",
    "error",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A workflow of the catalogue, and how things stand as somebody starts it."""

    name: str
    title: str
    params_schema: Mapping[str, Any]
    audience_id: int
    definition_id: str | None
    priority: int
    teams: Sequence[str]
    error: str
    may_be_limited: bool  # it has a limit of runs, or there are teams that have one
    under_way: int  # runs of whoever starts it, as far as they were counted
    clock: Clock | None  # on PostgreSQL; SQLite is asked when its one writer is


def offer_of(workflow: str, actor: str, *, at_most: int) -> Offer | None:
    """The workflow, if it is listed; the actor's runs under way are counted up to `at_most`."""
    with connection.cursor() as cursor:
        cursor.execute(_select(connection.vendor), [actor, at_most, workflow])
        found = cursor.fetchone()
    if found is None:
        return None
    *columns, may_be_limited, under_way, now = found
    given = dict(zip(_COLUMNS, columns, strict=True))
    given["params_schema"] = read_stored(given["params_schema"])
    given["teams"] = () if given["teams"] is None else read_stored(given["teams"])
    return Offer(
        **given,
        may_be_limited=bool(may_be_limited),
        under_way=under_way,
        clock=None if now is None else Clock(moment_of(now)),
    )


@lru_cache
def _select(vendor: str) -> str:
    now = "CLOCK_TIMESTAMP()" if vendor == "postgresql" else "NULL"
    return f"""
SELECT {", ".join(_COLUMNS)},
    EXISTS (
        SELECT 1 FROM runs_limit
        WHERE key = '{WORKFLOW}:' || offer.name OR key LIKE '{TEAM}:%%'
    ),
    (
        SELECT COUNT(*) FROM (
            SELECT 1 FROM runs_run WHERE started_by = %s AND ended_at IS NULL LIMIT %s
        ) AS own
    ),
    {now}
FROM runs_workflow AS offer WHERE name = %s AND listed
"""  # noqa: S608  no values
