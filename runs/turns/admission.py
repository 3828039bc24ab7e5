"""How many runs of a workflow, or for a team, are under way at once: who has a place, who waits.

A run that needs a place takes it in a turn, under the lock of each limit it falls under, and gives
it back in the turn in which it ends or stops. Whoever comes when all places are taken waits; the
record says so, and nothing of the run is decided before it is let in (runs/admission.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from runs.kernel.events import EventKind
from runs.kernel.places import is_handed_out
from runs.kernel.slots import ADMITTED, QUEUED
from runs.models import Workflow
from runs.turns.lines import Admission, Limit

if TYPE_CHECKING:
    from runs.record import Turn

# The run needs a place before it may go on, and does not stand in the queue for one.
OUTSIDE: Final = "outside"
IN_LINE: Final = frozenset({QUEUED, ADMITTED})
# A step of priority goes before what came up to so much earlier, so that nobody waits for ever.
STEP_OF_PRIORITY: Final = timedelta(minutes=10)
WORKFLOW: Final = "workflow"
TEAM: Final = "team"
_heard: list[Callable[[Sequence[str]], Any]] = []


def when_freed(admit: Callable[[Sequence[str]], Any]) -> None:
    """Call `admit(keys)` after a turn in which places under these limits may have become free."""
    if admit not in _heard:
        _heard.append(admit)


def key_of(kind: str, name: str) -> str:
    """How a limit is called: `workflow:release`, `team:Platform`."""
    return f"{kind}:{name}"


def limits_of(workflow: str, teams: Iterable[str]) -> list[Limit]:
    """The limits that a run of this workflow falls under now, in the order they are locked in."""
    keys = [key_of(WORKFLOW, workflow), *(key_of(TEAM, team) for team in teams)]
    return list(Limit.objects.filter(key__in=keys).order_by("key"))


def enter(turn: Turn, *, follows: bool) -> bool:
    """Take a place, or stand in the queue, before a run without one goes on; whether it did."""
    run, state = turn.run, turn.state
    assert turn.shape is not None
    if run.admission != OUTSIDE or state.cancelled or state.ended is not None:
        return False
    if not follows and not _starts(turn):
        return False
    turn.need_lock()
    teams = Workflow.objects.filter(name=run.workflow).values_list("teams", flat=True).first()
    limits = _locked([limit.key for limit in limits_of(run.workflow, teams or ())])
    rank = turn.now - run.priority * STEP_OF_PRIORITY
    # Nobody passes those who wait; who comes first of them is found out after the turn.
    waiting = Admission.objects.filter(
        key__in=[limit.key for limit in limits], admitted=False
    ).exists()
    goes_in = not waiting and all(_has_room(limit) for limit in limits)
    Admission.objects.bulk_create(
        Admission(run_id=run.pk, key=limit.key, admitted=goes_in, rank=rank) for limit in limits
    )
    facts: dict[str, Any] = {"limits": [{"of": one.key, "limit": one.most} for one in limits]}
    if any(limit.lends for limit in limits):
        facts["lends"] = True
    turn.append(EventKind.RUN_ADMITTED if goes_in else EventKind.RUN_QUEUED, (), facts)
    run.admission = turn.state.admission
    if not goes_in:
        # Somebody may have left between the count and the commit.
        _tell(turn, [limit.key for limit in limits])
    return True


def _starts(turn: Turn) -> bool:
    """Whether something of the run is for a worker to do now."""
    state = turn.state
    assert turn.shape is not None
    return not state.held and any(
        is_handed_out(turn.shape, task, path, state.loops) for task, path in state.queued
    )


def let_in(turn: Turn) -> bool:
    """Give the run of this turn its place, if it waits for one and there is room now."""
    run = turn.run
    if run.admission != QUEUED:
        return False
    mine = Admission.objects.filter(run_id=run.pk)
    if not all(_has_room(limit) for limit in _locked(mine.values_list("key", flat=True))):
        return False
    mine.update(admitted=True)
    turn.append(EventKind.RUN_ADMITTED, (), {"lends": True} if turn.state.lends else {})
    run.admission = turn.state.admission
    return True


def leave(turn: Turn) -> None:
    """Give back the places of a run that ended or stopped, or its place in the queue."""
    turn.need_lock()
    mine = Admission.objects.filter(run_id=turn.run.pk)
    keys = list(mine.values_list("key", flat=True))
    mine.delete()
    _tell(turn, keys)


def _tell(turn: Turn, keys: Sequence[str]) -> None:
    for admit in _heard:
        turn.afterwards(partial(admit, keys))


def _locked(keys: Iterable[str]) -> list[Limit]:
    """The limits that there are by these names, nobody else counts under them meanwhile.

    SQLite locks everything when a transaction begins.
    """
    found = Limit.objects.filter(key__in=list(keys)).order_by("key")
    if connection.vendor == "postgresql":
        found = found.select_for_update(no_key=True)
    return list(found)


def _has_room(limit: Limit) -> bool:
    return Admission.objects.filter(key=limit.key, admitted=True).count() < limit.most
