"""Questions on their way to routers: each is a row with a time, and no thread waits for it.

A call is taken by an UPDATE. The router's claim of the question comes first and stands in the
record; then the question is posted, outside of any transaction; then the answer is recorded like
anybody's. Whoever dies in between leaves a lapsed lease: the question is posted once more under the
same `Idempotency-Key`, and the claim lets only one answer in.
"""

from __future__ import annotations

import logging
import random
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from django.db import InterfaceError, OperationalError
from django.db.models import F, Min, Q

from gates import columns, services
from gates.answers.holding import Question
from gates.errors import AlreadyClaimed, GateError
from gates.models import Request, RouterCall
from gates.notify.errors import NotSent
from gates.principals import Principal
from gates.routers import posting, worker
from gates.routers.posting import BadReply, Reply, Target
from runs import record
from runs.access import Forbidden, NotVisible
from runs.kernel.callbacks import CallbackStatus
from runs.kernel.events import EventKind
from runs.kernel.jsonable import JsonValueError
from runs.kernel.retries import RetryPolicy
from runs.record import Turn
from runs.shapes.routers import router_name

logger = logging.getLogger(__name__)

POLICY: Final = RetryPolicy()
# Longer than any router's own time limit.
LEASE: Final = timedelta(seconds=120)
HELD_AGAIN: Final = timedelta(seconds=30)
AT_ONCE: Final = 50
State = RouterCall.State
_CHANCE: Final = random.SystemRandom()
_REFUSALS: Final = (GateError, Forbidden, NotVisible, JsonValueError)


def project(turn: Turn) -> None:
    """Note each question that goes to a router, with the event that says so."""
    rows = [
        {
            "uid": uuid4(),
            "run_id": turn.run.pk,
            "request_id": columns.request_id(event.fields["requestId"]),
            "seq": event.seq,
            "router": columns.text(name, 100),
            "next_at": turn.now,
        }
        for event in turn.events
        if event.kind == EventKind.ROUTED and (name := router_name(event.fields))
    ]
    if rows:
        turn.writes.insert(RouterCall, rows)
        turn.afterwards(worker.wake)


def due() -> list[int]:
    """The calls to be made now, those whose caller died among them."""
    now = record.database_now()
    found = RouterCall.objects.filter(
        Q(state=State.PENDING, next_at__lte=now) | Q(state=State.SENDING, lease_until__lt=now)
    )
    return list(found.order_by("next_at").values_list("pk", flat=True)[:AT_ONCE])


def seconds_until_due(longest: float) -> float:
    """How long nothing is due by itself, at most `longest`."""
    first = RouterCall.objects.filter(state=State.PENDING).aggregate(at=Min("next_at"))["at"]
    if first is None:
        return longest
    wait: float = (first - record.database_now()).total_seconds()
    return max(0.0, min(longest, wait))


def make(pk: int) -> bool:
    """Make the call, if it is still ours to make; returns whether it was."""
    call = _take(pk)
    if call is None:
        return False
    try:
        _carry_out(call)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        logger.exception("question not sent call=%s", call.uid)
        _give_up(call, f"Not sent ({type(error).__name__}).")
    return True


def _take(pk: int) -> RouterCall | None:
    now = record.database_now()
    free = Q(state=State.PENDING, next_at__lte=now) | Q(state=State.SENDING, lease_until__lt=now)
    won = RouterCall.objects.filter(free, pk=pk).update(
        state=State.SENDING, attempts=F("attempts") + 1, lease_until=now + LEASE
    )
    return RouterCall.objects.get(pk=pk) if won else None


def _carry_out(call: RouterCall) -> None:
    row = _question(call)
    if row is not None and row.answered_by == f"router:{call.router}":
        _end(call, State.ANSWERED)
        return
    if row is None or not row.is_open or router_name(row.routing) != call.router:
        _end(call, State.WITHDRAWN, "The question was closed before.")
        return
    target = posting.target_of(row)
    if target is None:
        _refuse(call, row, f"There is no router {call.router!r} here that is in use.")
        return
    who = Principal.for_router(target.name)
    if call.attempts > POLICY.max_attempts:
        _refuse(call, row, "It did not answer, however often it was asked.")
        return
    try:
        _claim(row, who)
    except AlreadyClaimed:
        _later(call, HELD_AGAIN, "Somebody holds the question.", counted=False)
        return
    except _REFUSALS as refusal:
        _refuse(call, row, str(refusal))
        return
    _post(call, row, target, who)


def _post(call: RouterCall, row: Request, target: Target, who: Principal) -> None:
    try:
        reply = posting.ask(target, call, row, who)
    except NotSent as failure:
        if failure.retryable and call.attempts < POLICY.max_attempts:
            wait = POLICY.delay_ms(call.attempts, _CHANCE.random(), failure.hint_ms)
            _later(call, timedelta(milliseconds=wait), failure.text)
        else:
            _refuse(call, row, failure.text)
    except BadReply as bad:
        _refuse(call, row, str(bad))
    else:
        if reply is None:
            _end(call, State.WAITING)
        else:
            _answer(call, row, reply, who)


def _answer(call: RouterCall, row: Request, reply: Reply, who: Principal) -> None:
    try:
        services.submit(
            row.pk,
            principal=who,
            token=None,
            digest=row.digest,
            response=reply.response,
            seen=reply.seen,
        )
    except _REFUSALS as refusal:
        _refuse(call, row, str(refusal))
    else:
        _end(call, State.ANSWERED)


def _claim(row: Request, who: Principal) -> None:
    """Take the question for the router, unless an earlier try of this call has."""
    if row.status == Request.Status.CLAIMED and row.holder == who.actor:
        return
    services.claim(row.pk, principal=who)


def _question(call: RouterCall) -> Request | None:
    asked = Request.objects.select_related("run", "audience")
    return asked.filter(run=call.run_id, request_id=call.request_id).first()


def _refuse(call: RouterCall, row: Request, why: str) -> None:
    """Give the question back to whoever else may answer, and say in the record why."""
    actor = f"router:{call.router}"
    with record.turn(row.run_id, actor=actor, surface="router") as turn:
        question = Question.locked(turn, row.pk)
        is_held = question.held.status is CallbackStatus.CLAIMED
        if is_held and question.held.router_id == actor:
            question.release()
        if question.held.is_live:
            question.note_refused(f"{call.router}: {why}")
    _give_up(call, why)


def _give_up(call: RouterCall, why: str) -> None:
    _end(call, State.FAILED, why)
    logger.warning("router did not answer call=%s router=%s why=%s", call.uid, call.router, why)


def _end(call: RouterCall, state: str, error: str = "") -> None:
    _mine(call).update(state=state, error=error, lease_until=None, done_at=record.database_now())


def _later(call: RouterCall, wait: timedelta, error: str, *, counted: bool = True) -> None:
    changes: dict[str, Any] = {} if counted else {"attempts": F("attempts") - 1}
    _mine(call).update(
        state=State.PENDING,
        lease_until=None,
        next_at=record.database_now() + wait,
        error=error,
        **changes,
    )


def _mine(call: RouterCall) -> Any:
    """The row while this claim of it holds; nobody who was too slow changes it any more."""
    return RouterCall.objects.filter(pk=call.pk, state=State.SENDING, attempts=call.attempts)
