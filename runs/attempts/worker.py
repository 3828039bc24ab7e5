"""Execute one attempt: claim it, do the author's work outside any transaction, record the end."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django.db import InterfaceError, OperationalError
from structlog.contextvars import bind_contextvars

from runs import backlog, record, registry, traces, tries
from runs.attempts import heartbeat
from runs.attempts.leases import Held, lease, leases
from runs.attempts.starts import Due, Start, Taken
from runs.attempts.steady import let_go, steadily
from runs.drivers import checks
from runs.drivers import execute as steps
from runs.drivers.execute import Ended
from runs.kernel.decide import place_at
from runs.kernel.errors import LoopError
from runs.kernel.events import EventKind, joined
from runs.kernel.loop_events import Found
from runs.kernel.outcomes import failing
from runs.models import Attempt
from runs.record import Turn
from runs.turns import results

logger = logging.getLogger(__name__)

AWAY: Final = (OperationalError, InterfaceError)
# A worker goes on with one run for so long; then the others that wait get their turn.
ONWARD_SECONDS: Final = 1.0
_names = {"role": "worker"}
# The process that has a pool, and which of its starts this is.
_main: list[str] = []
_facts: dict[str, Any] = {}
_leaving = threading.Event()


def worker_name() -> str:
    """Who holds a lease: role, host and process; a child of a pool below the one that beats."""
    own = os.getpid()
    if _main and _main[0] != str(own):
        return child_name(own)
    return f"{_names['role']}@{socket.gethostname()}/{own}"[:200]


def child_name(pid: int) -> str:
    """The name of a child of this pool: it says of which start, for numbers come again."""
    main, start = _main
    return f"{_names['role']}@{socket.gethostname()}/{main}/{pid}-{start}"[:200]


def speak_for_children() -> None:
    """Let the children that this process makes from now on be named below it."""
    _main[:] = [str(os.getpid()), secrets.token_hex(4)]


def describe(**facts: Any) -> None:
    """What operators are told of this worker: its queues, and how many steps it does at once."""
    _facts.update(facts)


def work_as(role: str) -> str:
    """Name this process's worker; returns what all workers of that role on this host share."""
    _names["role"] = role
    return f"{role}@{socket.gethostname()}/"


def beat() -> None:
    """Show that this worker lives."""
    heartbeat.beat(worker_name(), "worker", **_facts)


def take_leave() -> None:
    """Show no more that this worker lives: it has ended in good order."""
    heartbeat.leave(worker_name())


def leave() -> None:
    """Finish what runs and begin nothing after it: the process is to end."""
    _leaving.set()


def stay() -> None:
    """Take back an earlier `leave`."""
    _leaving.clear()


def execute(attempt_pk: int, *, run_id: UUID | None = None, onward: float = ONWARD_SECONDS) -> None:
    """Do this attempt once, and for `onward` seconds go on while steps follow on one another.

    A duplicate, late or withdrawn message does nothing (design I3). Of which run the attempt is
    said to be saves a way to the database, and decides nothing.
    """
    # A connection out of the pool may have broken there.
    due = steadily(lambda: Due.find(attempt_pk, run_id))
    if due is None:
        return
    if due.others_held_back:
        backlog.crowd.saw(held_back=True)
    if changed := due.changed():
        _hold(due, changed)
        return
    made = registry.published(due.workflow)
    assert made is not None
    first = Start(due, made)
    if not steadily(lambda: claim(first)):
        return
    until = time.monotonic() + onward
    start: Start | None = first
    while start is not None:
        start = _do(start, until)


def _do(start: Start, until: float) -> Start | None:
    """Do a start that was claimed; returns the one that this worker has begun in its end."""
    due = start.due
    leases.hold(due.pk, Held(due.run_id, start.fence, start.signal))
    facts: dict[str, Any] = {"run_id": str(due.run_id), "step": joined(due.path), "attempt": due.pk}
    # Until the task is over (obversa_site/celery.py): its last line is about this step too.
    bind_contextvars(**facts)
    facts |= {"workflow": due.workflow, "number": due.number}
    try:
        with traces.span("obversa.step", parent=due.trace, **facts) as span:
            return _work(start, until, span)
    finally:
        leases.drop(due.pk)


def _hold(due: Due, reason: str) -> None:
    with record.turn(due.run_id, surface="worker") as turn:
        if not turn.state.held and turn.state.ended is None:
            turn.append(EventKind.RUN_HELD, (), {"reason": reason, "code": "definition-changed"})


# --- the claim -----------------------------------------------------------------------------------


def claim(start: Start) -> bool:
    """Take the attempt and record its start before its job begins (design I1, I2)."""
    try:
        return _claim(start)
    except Taken:
        return False


def _claim(start: Start) -> bool:
    def take(turn: Turn) -> bool:
        start.state = turn.state
        if turn.state.held or turn.state.stands_in_line:
            return False
        if not start.is_due(turn.state):
            turn.need_lock()
            # Ours already, when the first try was committed and its answer lost.
            start.withdraw(turn.now)
            return start.has(Attempt.Status.RUNNING)
        start.take(turn, **_claimed_by(start, turn))
        _begin(start, turn)
        return True

    # Most of the time another process has made it due.
    if not start.due.is_seen:
        tries.look(start.due.run_id)
    return tries.in_turn(start.due.run_id, take, surface="worker")


def _claimed_by(start: Start, turn: Turn) -> dict[str, Any]:
    return {
        "status": Attempt.Status.RUNNING,
        "fence": start.fence,
        "worker": worker_name(),
        "lease_until": turn.now + lease(),
        "claimed_at": turn.now,
    }


def _begin(start: Start, turn: Turn) -> None:
    _note_changed_body(start, turn)
    fields: dict[str, Any] = {"label": start.label}
    if start.is_check:
        fields["task"] = start.due.task
    else:
        fields = steps.start_fields(start.leaf.shape, start.inherited_ms)
    fields["number"] = start.due.number
    turn.append(EventKind.JOB_START, start.path, fields, key=start.key("start"))
    start.state = turn.state


def _note_changed_body(start: Start, turn: Turn) -> None:
    """Only bodies changed: the run goes on, and its record says so once (design D20)."""
    digest = start.made.digest
    if digest == turn.run.definition_id:
        return
    key = f"code:{digest}"
    if not record.has_key(turn.run.pk, key):
        text = "The code of this workflow changed since the run started; its shape did not."
        turn.append(EventKind.LOG, (), {"level": "warn", "message": text}, key=key)


# --- the work ------------------------------------------------------------------------------------


def _work(start: Start, until: float, span: traces.Span) -> Start | None:
    began = time.monotonic()
    try:
        ctx = start.context()
    except Exception as error:
        logger.exception("step not begun run=%s path=%s", start.due.run_id, start.path)
        return _end(start, _failed(start, f"The step could not begin: {type(error).__name__}."))
    # A long step keeps no connection from others that wait for one.
    let_go()
    if start.is_check:
        found = checks.run_check(start.made.job, start.path, start.due.task, start.state, ctx)
        return _end(start, _check_ended(start, found), until)
    ended = steps.run_leaf(start.leaf, ctx)
    before = start.state.shared
    ended, changes = results.checked(ended, start.path, before, ctx.state, clean=ctx.scrubbed)
    if ended.outcome is not None:
        span.note(outcome=ended.outcome.status)
    duration = round((time.monotonic() - began) * 1000)
    return _end(start, _step_ended(start, ended, {"durationMs": duration, **changes}), until)


Write = Callable[[Turn], None]


def _step_ended(start: Start, ended: Ended, more: dict[str, Any]) -> Write:
    def write(turn: Turn) -> None:
        if ended.error is not None:
            turn.append(EventKind.ERROR, start.path, steps.error_fields(ended.error))
        if ended.asking is not None:
            assert turn.shape is not None
            place = place_at(turn.shape, turn.state, start.path)
            for event in steps.bind(turn.state, place, ended.asking, turn.now_ms):
                turn.append(event.kind, event.path, event.fields)
            return
        fields = steps.end_fields(start.leaf.shape, ended, more["durationMs"]) | more
        turn.append(EventKind.JOB_END, start.path, fields, key=start.key("end"))

    return write


def _check_ended(start: Start, found: Found | LoopError) -> Write:
    def write(turn: Turn) -> None:
        task = start.due.task
        events = checks.check_events(start.path, task, turn.state, found, turn.now_ms)
        for event in events[:-1]:
            turn.append(event.kind, event.path, event.fields)
        last = events[-1]
        turn.append(last.kind, last.path, last.fields, key=start.key("end"))

    return write


def _failed(start: Start, text: str) -> Write:
    error = LoopError("VALIDATION", text, phase="body")
    if start.is_check:
        return _check_ended(start, error)
    return _step_ended(start, Ended(outcome=failing(error), error=error), {"durationMs": 0})


# --- the end -------------------------------------------------------------------------------------


def _end(start: Start, write: Write, until: float = 0.0) -> Start | None:
    """Apply the result once; one that cannot be recorded is a failure of its step (design I6).

    Until that time (of the monotonic clock) this worker begins a step that follows at once.
    """
    try:
        return steadily(lambda: _end_once(start, write, until))
    except AWAY:
        raise
    except Exception as error:
        logger.exception("result not recorded run=%s path=%s", start.due.run_id, start.path)
        failed = _failed(start, f"The result could not be recorded: {type(error).__name__}.")
        return steadily(lambda: _end_once(start, failed, 0.0))


def _end_once(start: Start, write: Write, until: float) -> Start | None:
    keys: list[int] = []

    def finish(turn: Turn) -> None:
        start.finish(turn)
        write(turn)
        if time.monotonic() < until and not _leaving.is_set():
            following = _go_on(turn, keys)
            start.following += [following] if following else []

    try:
        tries.in_turn(start.due.run_id, finish, surface="worker")
    except Taken:
        return _over(start)
    except AWAY:
        raise
    except Exception:
        # Where the start is over already, its result cannot fit the record any more.
        if start.has(Attempt.Status.RUNNING):
            raise
        return _over(start)
    return start.following[-1].known_as(keys[0]) if keys else None


def _over(start: Start) -> Start | None:
    """The start has ended before; what it began is ours, when only the commit's answer was lost."""
    _refused(start)
    return next((one for one in start.following if one.find_begun()), None)


def _go_on(turn: Turn, keys: list[int]) -> Start | None:
    """Begin one of the steps that follow in the turn that makes them due.

    It has its start and its lease in the record before its job begins, like any other (design I1,
    I5); what is saved is a message, a way through the broker and a turn.
    """
    turn.settle()
    start = Start.following_from(turn)
    if start is not None:
        row = {**start.which(), "ready_at": turn.now, "sent_at": turn.now}
        turn.writes.insert(Attempt, [row | _claimed_by(start, turn)], keys=keys)
        _begin(start, turn)
    return start


def _refused(start: Start) -> None:
    """Note a result that came too late; one that is in the record already is none."""
    with record.turn(start.due.run_id, surface="worker") as turn:
        if not start.has(Attempt.Status.DONE):
            facts = {"number": start.due.number, "worker": worker_name()}
            turn.append(EventKind.STEP_REFUSED, start.path, facts)
            logger.warning("late result refused run=%s path=%s", turn.run.pk, start.path)
