"""All that an answer is decided on, read at once: the question, its run, and who answers.

PostgreSQL only, and only outside of a transaction: where a turn is made under its run's lock all of
it is read anew there.
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from uuid import UUID

from django.db import connection

from gates import access
from gates.answers.holding import Question
from gates.models import Request
from gates.principals import Principal, fresh
from runs import tries
from runs.kernel.state import RunState
from runs.people.rights import PERSON_TIMES, Rights, rights_sql
from runs.record import Turn
from runs.turns import folding, locking, statements

# So long a caller's rights need not be read anew: about as long as a turn takes that is locked.
_FRESH_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Sight:
    """A question, its caller's rights, and the number of its run's last event, of one moment."""

    row: Request
    who: Principal
    seq: int
    _at: float = field(default_factory=time.monotonic)

    def still_holds(self, turn: Turn) -> bool:
        """Whether the turn is decided on this very moment, and writes only if that was the last."""
        is_fresh = time.monotonic() - self._at < _FRESH_SECONDS
        return is_fresh and not turn.is_locked and turn.before.seq == self.seq

    def question_in(self, turn: Turn) -> Question:
        """The question, with a row of the turn's own to change."""
        return Question.of(turn, copy(self.row))


def look(who: Principal, pk: UUID) -> Sight | None:
    """The question, for somebody who may see it, and its run for the turn that follows.

    None where it would not help, or there is nothing that this caller may see.
    """
    if not tries.may_try():
        return None
    run_id = access.run_of(pk)
    known = RunState() if run_id is None else folding.known_of(run_id)
    with connection.cursor() as cursor:
        cursor.execute(_select(), [known.seq, *[_person(who)] * PERSON_TIMES, pk])
        found = cursor.fetchone()
    if found is None:
        return None
    *columns, rights_found = found
    width = len(Request._meta.concrete_fields)
    row = statements.made(Request, columns[:width])
    of_run = locking.found(columns[width:])
    row.run = of_run[0]
    rights, members = Rights.read(rights_found or ())
    who.learn(row.audience_id, members, rights)
    if not access.is_shown(who, row):
        return None
    now = fresh(who)
    if _person(now) == _person(who):
        now.learn(row.audience_id, members, rights)
    tries.saw(of_run, known if run_id is not None else folding.known_of(row.run_id))
    return Sight(row, now, row.run.last_seq)


def _person(who: Principal) -> int | None:
    return None if who.user is None else who.user.pk


@lru_cache
def _select() -> str:
    asked = ", ".join(f"asked.{statements.quoted(f.column)}" for f in Request._meta.concrete_fields)
    return f"""
SELECT {asked}, {locking.reading()}, (
    SELECT JSON_AGG(JSON_BUILD_ARRAY(what, name, above))
    FROM ({rights_sql("asked.audience_id")}) AS given(what, name, above)
)
FROM {statements.quoted(Request._meta.db_table)} AS asked
JOIN runs_run AS here ON here.id = asked.run_id
WHERE asked.id = %s
"""  # noqa: S608  no values
