"""Execute one attempt: claim it, do the author's work outside any transaction, record the end."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable
from typing import Any, Final

from django.db import InterfaceError, OperationalError

from runs import heartbeat, record, registry, results
from runs.drivers import checks
from runs.drivers import execute as steps
from runs.drivers.execute import Ended
from runs.kernel.decide import place_at
from runs.kernel.errors import LoopError
from runs.kernel.events import EventKind
from runs.kernel.loop_events import Found
from runs.kernel.outcomes import failing
from runs.leases import Held, lease, leases
from runs.models import Attempt
from runs.record import Turn
from runs.starts import Due, Start, Taken
from runs.steady import let_go, steadily

logger = logging.getLogger(__name__)

AWAY: Final = (OperationalError, InterfaceError)
_names = {"role": "worker"}


def worker_name() -> str:
    """Who holds a lease: role, host and process."""
    return f"{_names['role']}@{socket.gethostname()}/{os.getpid()}"[:200]


def work_as(role: str) -> str:
    """Name this process's worker; returns what all workers of that role on this host share."""
    _names["role"] = role
    return f"{role}@{socket.gethostname()}/"


def beat() -> None:
    """Show that this worker lives."""
    heartbeat.beat(worker_name(), "worker")


def execute(attempt_pk: int) -> None:
    """Do this attempt once. A duplicate, late or withdrawn message does nothing (design I3)."""
    due = Due.find(attempt_pk)
    if due is None:
        return
    if changed := due.changed():
        _hold(due, changed)
        return
    made = registry.published(due.workflow)
    assert made is not None
    start = Start(due, made)
    if not steadily(lambda: claim(start)):
        return
    leases.hold(due.pk, Held(due.run_id, start.fence, start.signal))
    try:
        _work(start)
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
    due = start.due
    with record.turn(due.run_id, surface="worker") as turn:
        start.state = turn.state
        if turn.state.held:
            return False
        if not start.is_due(turn.state):
            # Ours already, when the first try was committed and its answer lost.
            start.withdraw(turn.now)
            return start.has(Attempt.Status.RUNNING)
        start.take(
            turn,
            status=Attempt.Status.RUNNING,
            fence=start.fence,
            worker=worker_name(),
            lease_until=turn.now + lease(),
            claimed_at=turn.now,
        )
        _note_changed_body(start, turn)
        fields: dict[str, Any] = {"label": start.label, "number": due.number}
        if start.is_check:
            fields["task"] = due.task
        turn.append(EventKind.JOB_START, due.path, fields, key=start.key("start"))
        start.state = turn.state
    return True


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


def _work(start: Start) -> None:
    began = time.monotonic()
    try:
        ctx = start.context()
    except Exception as error:
        logger.exception("step not begun run=%s path=%s", start.due.run_id, start.path)
        _end(start, _failed(start, f"The step could not begin: {type(error).__name__}."))
        return
    # A long step keeps no connection from others that wait for one.
    let_go()
    if start.is_check:
        found = checks.run_check(start.made.job, start.path, start.due.task, start.state, ctx)
        _end(start, _check_ended(start, found))
        return
    ended = steps.run_leaf(start.leaf, ctx)
    before = start.state.shared
    ended, changes = results.checked(ended, start.path, before, ctx.state, clean=ctx.scrubbed)
    duration = round((time.monotonic() - began) * 1000)
    _end(start, _step_ended(start, ended, {"durationMs": duration, **changes}))


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


def _end(start: Start, write: Write) -> None:
    """Apply the result once; one that cannot be recorded is a failure of its step (design I6)."""
    try:
        steadily(lambda: _end_once(start, write))
    except AWAY:
        raise
    except Exception as error:
        logger.exception("result not recorded run=%s path=%s", start.due.run_id, start.path)
        failed = _failed(start, f"The result could not be recorded: {type(error).__name__}.")
        steadily(lambda: _end_once(start, failed))


def _end_once(start: Start, write: Write) -> None:
    try:
        with record.turn(start.due.run_id, surface="worker") as turn:
            start.finish(turn)
            write(turn)
    except Taken:
        _refused(start)
    except AWAY:
        raise
    except Exception:
        # Where the start is over already, its result cannot fit the record any more.
        if start.has(Attempt.Status.RUNNING):
            raise
        _refused(start)


def _refused(start: Start) -> None:
    """Note a result that came too late; one that is in the record already is none."""
    with record.turn(start.due.run_id, surface="worker") as turn:
        if not start.has(Attempt.Status.DONE):
            facts = {"number": start.due.number, "worker": worker_name()}
            turn.append(EventKind.STEP_REFUSED, start.path, facts)
            logger.warning("late result refused run=%s path=%s", turn.run.pk, start.path)
