"""Turns that are tried without the lock of their run, on what this process has just seen of it.

Such a turn reads nothing more and writes everything in one statement, which changes the run's row
only if no event was recorded since, and by which the database checks the time that was thought to
be. Whoever was slower makes the turn again under the lock. So a step costs one way to the database
where it cost four, and nobody who thinks keeps anybody waiting.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from copy import copy
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection

from runs import record
from runs.kernel.state import RunState
from runs.models import Run
from runs.record import Moved, Turn
from runs.turns import folding, locking, recent
from runs.turns.clock import Clock, moment_of

T = TypeVar("T")
_READS: Final = "SELECT"
# What PostgreSQL calls the end of a transaction that stood in another's way.
_ROLLED_BACK: Final = "40"


def in_turn(
    run_id: UUID, do: Callable[[Turn], T], *, actor: str = "system", surface: str = ""
) -> T:
    """Call `do(turn)` in a turn of the run; it may be called twice, and only the last one counts.

    Raises RunUnknown. What `do` writes by itself, and not by its turn, is written under the lock.
    """
    seen = recent.of(run_id) if may_try() else None
    if seen is not None:
        try:
            return _tried(seen, do, actor, surface)
        except (OperationalError, InterfaceError) as error:
            if not str(getattr(error.__cause__, "sqlstate", "")).startswith(_ROLLED_BACK):
                raise
        except Exception:  # noqa: BLE001  what was known may be old: the lock tells what is true
            recent.lost(run_id)
    with record.turn(run_id, actor=actor, surface=surface) as turn:
        return do(turn)


def first_turn(
    run: Run, do: Callable[[Turn], None], *, actor: str, surface: str, clock: Clock | None
) -> Run:
    """Create the run with its first turn, in which `do(turn)` is called; returns the run's row.

    By a `clock` that was read just now it is tried without a transaction around it.
    """
    if clock is not None and may_try():
        with contextlib.suppress(Moved):
            return _tried_first(copy(run), do, actor, surface, clock)
    with record.first_turn(run, actor=actor, surface=surface) as turn:
        do(turn)
    return run


def look(run_id: UUID) -> None:
    """Read the run for a turn that follows at once; does nothing where that would not help."""
    if not may_try() or recent.is_busy(run_id):
        return
    known = folding.known_of(run_id)
    found = locking.looked(run_id, known.seq)
    if found is not None:
        saw(found, known)


def saw(found: locking.Found, known: RunState) -> recent.Seen:
    """Keep what was read of a run in one moment, with what is new since `known`."""
    run, now, news = found
    clock = Clock(moment_of(now))
    state = folding.state_at(run.pk, run.last_seq, committed=True, known=known, news=news)
    seen = recent.Seen(run, state, clock)
    recent.put(seen)
    return seen


def may_try() -> bool:
    """Whether a turn that begins here may be tried without its run's lock."""
    return connection.vendor == "postgresql" and not connection.in_atomic_block


def _tried(seen: recent.Seen, do: Callable[[Turn], T], actor: str, surface: str) -> T:
    with record.told(seen.run.pk) as span:
        run = seen.row()
        now = max(seen.clock.now, run.changed_at)
        turn = Turn(run, now, actor, surface, before=seen.state, clock=seen.clock, locked=False)
        with connection.execute_wrapper(_only_reads):
            turn.keep_time()
            found = do(turn)
            turn.prepare()
        turn.send()
        span.note(workflow=turn.run.workflow, events=len(turn.events))
    return found


def _tried_first(
    run: Run, do: Callable[[Turn], None], actor: str, surface: str, clock: Clock
) -> Run:
    with record.told(run.pk) as span:
        turn = Turn(
            run, clock.now, actor, surface, before=RunState(), first=True, clock=clock, locked=False
        )
        run.created_at = run.changed_at = turn.now
        with connection.execute_wrapper(_only_reads):
            do(turn)
            turn.prepare()
        turn.send()
        run._state.adding = False
        span.note(workflow=run.workflow, events=len(turn.events))
    return run


def _only_reads(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    """Nothing is written before the one statement that tells whether anything may be."""
    if not sql.lstrip().startswith(_READS):
        raise Moved
    return execute(sql, params, many, context)
