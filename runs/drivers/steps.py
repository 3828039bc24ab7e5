"""One start of one step of a session in this process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from runs.drivers import checks, execute
from runs.drivers.clock import now
from runs.drivers.context import Context, Workspace
from runs.kernel.calls import ready_at
from runs.kernel.decide import StartStep, place_at
from runs.kernel.events import EventKind
from runs.kernel.questions import default_answers
from runs.kernel.slots import JOB
from runs.shapes.job import Leaf, job_at

if TYPE_CHECKING:
    from runs.drivers.session import MemorySession


def do(session: MemorySession, start: StartStep) -> None:
    """Do one start, on a thread of its own; what it came to is recorded."""
    if start.task != JOB:
        _check(session, start)
        return
    with session.lock:
        if not _is_due(session, start):
            return
        leaf = job_at(session.job, start.path, session.state.loops)
        assert isinstance(leaf, Leaf)
        ctx = _context(session, start)
        begun = execute.start_fields(leaf.shape, lambda: ctx.timeout_ms)
        session.append(EventKind.JOB_START, start.path, begun)
    started = time.monotonic()
    ended = execute.run_leaf(leaf, ctx)
    duration = round((time.monotonic() - started) * 1000)
    with session.lock:
        if session.client_used:
            session.read_client(path=start.path)
        if ended.error is not None:
            session.append(EventKind.ERROR, start.path, execute.error_fields(ended.error))
        if ended.asking is not None:
            place = place_at(session.shape, session.state, start.path)
            session.record(execute.bind(session.state, place, ended.asking, now()))
            return
        fields = execute.end_fields(leaf.shape, ended, duration)
        session.append(EventKind.JOB_END, start.path, fields)


def _check(session: MemorySession, start: StartStep) -> None:
    with session.lock:
        if not _is_due(session, start):
            return
        ctx, state = _context(session, start), session.state
    found = checks.run_check(session.job, start.path, start.task, state, ctx)
    with session.lock:
        if _is_due(session, start):
            for event in checks.check_events(start.path, start.task, session.state, found, now()):
                session.append(event.kind, event.path, event.fields)


def _is_due(session: MemorySession, start: StartStep) -> bool:
    return session.state.queued.get((start.task, start.path)) == start.number


def _context(session: MemorySession, start: StartStep) -> Context:
    position = execute.position_of(session.shape, session.state, start.path, start.task)
    return Context(
        run_id=session.name,
        path=start.path,
        params=session.params,
        state=session.shared,
        workspace=Workspace(dir=session.workspace),
        port=session,
        signal=session.cancel,
        idempotency_key=execute.idempotency_key(session.name, session.state, start.path),
        on_callback="wait" if session.attended else "exit",
        default_answers=default_answers(session.state.expired),
        overridden=frozenset(session.state.overridden),
        approved=ready_at(session.state, start.path),
        actions=session.state.actions,
        dry_run=session.state.dry_run,
        **position.facts(),
        **session.more,
    )
