"""Repair what lost messages and dead workers left behind. Safe to run anywhere, at any time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Final, TypeVar
from uuid import UUID

from django.db import InterfaceError, OperationalError
from django.db.models import F, Q
from django.db.models.functions import Now

from runs import admission, backlog, dispatch, record
from runs.attempts import heartbeat
from runs.kernel.decide import StartStep, commands
from runs.kernel.events import EventKind, Path
from runs.kernel.graph import LeafShape
from runs.kernel.interactions import routers_of
from runs.kernel.places import shape_at
from runs.kernel.slots import JOB, QUEUED
from runs.kernel.state import RunState
from runs.models import Attempt, Run
from runs.record import Turn
from runs.turns.repairs import Repair

logger = logging.getLogger(__name__)

RESEND_AFTER: Final = timedelta(seconds=10)
STUCK_AFTER: Final = timedelta(seconds=60)
BATCH: Final = 500
REPAIRS_KEPT: Final = 200
_more: list[Callable[[], int]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one sweep repaired."""

    lost: int = 0
    resent: int = 0
    woken: int = 0
    other: int = 0

    def __bool__(self) -> bool:
        return bool(self.lost or self.resent or self.woken or self.other)


def also(repair: Callable[[], int]) -> None:
    """Let another app repair its own rows in every sweep."""
    if repair not in _more:
        _more.append(repair)


def sweep() -> Swept:
    """Find lapsed leases, unclaimed attempts and due timers (design I4, I5, I12)."""
    swept = Swept(
        lost=_lapsed(),
        resent=_unclaimed(),
        woken=wake_due() + admission.repair() + _stuck(),
        other=_each(_more, lambda repair: repair()),
    )
    heartbeat.beat("sweep", "sweep", by=heartbeat.here())
    if swept:
        _note(swept)
    return swept


def _note(swept: Swept) -> None:
    """Keep what was repaired for operators to see, for as many sweeps as they look back."""
    made = Repair.objects.create(at=Now(), by=heartbeat.here()[:200], **asdict(swept))
    Repair.objects.filter(pk__lte=made.pk - REPAIRS_KEPT).delete()


T = TypeVar("T")


def _each(found: Iterable[T], repair: Callable[[T], int]) -> int:
    """Repair one after the other: what is wrong with one must not keep the others waiting."""
    repaired = 0
    for one in found:
        try:
            repaired += repair(one)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("not swept what=%s", one)
    return repaired


def _lapsed() -> int:
    lapsed = Attempt.objects.filter(status=Attempt.Status.RUNNING, lease_until__lt=Now())
    return _each(list(lapsed.values_list("pk", flat=True)[:BATCH]), lose)


def lose(attempt_pk: int, *, whatever_the_lease: bool = False) -> bool:
    """Count a running attempt as interrupted; the rule of its step decides what follows."""
    attempt = Attempt.objects.filter(pk=attempt_pk).first()
    if attempt is None:
        return False
    with record.turn(attempt.run_id, surface="sweep") as turn:
        running = Attempt.objects.filter(pk=attempt_pk, status=Attempt.Status.RUNNING)
        if not whatever_the_lease:
            running = running.filter(lease_until__lt=turn.now)
        if not running.update(status=Attempt.Status.LOST, ended_at=turn.now):
            return False
        path = tuple(attempt.path)
        state, task = turn.state, attempt.task
        slot = state.slots.get(path) if task == JOB else state.checks.get((task, path))
        if slot is not None and slot.status == "running" and slot.number == attempt.number:
            facts = {"number": attempt.number, "worker": attempt.worker, "task": attempt.task}
            turn.append(EventKind.STEP_LOST, path, facts)
            _free_claims(turn, path)
    logger.warning("step lost run=%s step=%s", attempt.run_id, "/".join(attempt.path))
    return True


def _free_claims(turn: Turn, path: Path) -> None:
    """Give back what a lost step had claimed to answer it by itself (gates.md G106)."""
    leaf = None if turn.shape is None else shape_at(turn.shape, path, turn.state.loops)
    if not isinstance(leaf, LeafShape):
        return
    own = routers_of(leaf)
    for request_id, held in turn.state.callbacks.requests.items():
        router = held.router_id
        if held.status == "claimed" and router in own:
            turn.append(EventKind.RELEASED, path, {"requestId": request_id, "routerId": router})


def lose_all_of(worker: str) -> int:
    """Every running attempt of a worker that is known to be dead; `name/` is all named below it."""
    named = {"worker__startswith": worker} if worker.endswith("/") else {"worker": worker}
    running = Attempt.objects.filter(status=Attempt.Status.RUNNING, **named)
    found = list(running.values_list("pk", flat=True))
    return _each(found, lambda pk: lose(pk, whatever_the_lease=True))


def _unclaimed() -> int:
    # Each sending waits twice as long as the one before: a long queue is not a lost message.
    ready = Attempt.objects.filter(
        Q(sent_at=F("ready_at")) | Q(sent_at__lt=Now() - (F("sent_at") - F("ready_at"))),
        status=Attempt.Status.READY,
        sent_at__lt=Now() - RESEND_AFTER,
        run__held_reason="",
    ).exclude(run__admission=QUEUED)
    found = list(ready.order_by("sent_at").values_list("pk", flat=True)[:BATCH])
    if found:
        Attempt.objects.filter(pk__in=found, status=Attempt.Status.READY).update(sent_at=Now())
        dispatch.send(found)
    return len(found) + backlog.hand_out()


def wake_due() -> int:
    """Decide on every run whose time has come."""
    due = Run.objects.filter(wake_at__lte=Now()).values_list("pk", flat=True)[:BATCH]
    return _each(list(due), advance)


def _stuck() -> int:
    """A run that should move and has nothing handed out: look at it anew."""
    stuck = Run.objects.filter(
        status__in=[Run.Status.QUEUED, Run.Status.RUNNING],
        kind=Run.Kind.WORKFLOW,
        changed_at__lt=Now() - STUCK_AFTER,
    ).exclude(attempts__status__in=[Attempt.Status.READY, Attempt.Status.RUNNING])
    stuck = stuck.exclude(admission=QUEUED)
    return _each(list(stuck.values_list("pk", flat=True)[:BATCH]), advance)


def advance(run_id: UUID) -> bool:
    """Decide again, and hand out whatever the state says is queued but has no attempt."""
    made = []
    with record.turn(run_id, surface="sweep") as turn:
        turn.settle()
        if turn.shape is None or turn.state.ended is not None:
            return bool(turn.events)
        if not turn.events:
            for command in commands(turn.shape, RunState(), turn.state):
                if isinstance(command, StartStep):
                    row, new = Attempt.objects.get_or_create(
                        run_id=run_id,
                        path=list(command.path),
                        task=command.task,
                        number=command.number,
                        defaults={"ready_at": turn.now, "sent_at": turn.now},
                    )
                    made += [row.pk] if new else []
    if made:
        dispatch.send(made, run_id)
    return bool(made) or bool(turn.events)


def rescue(run_id: UUID, *, actor: str, surface: str = "admin") -> bool:
    """Look at one run anew on a person's word, and record that it was asked for."""
    with record.turn(run_id, actor=actor, surface=surface) as turn:
        turn.append(EventKind.RUN_SWEPT)
    for pk in Attempt.objects.filter(
        run_id=run_id, status=Attempt.Status.RUNNING, lease_until__lt=Now()
    ).values_list("pk", flat=True):
        lose(pk)
    return advance(run_id)
