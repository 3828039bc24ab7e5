"""Do what is no step's own work: a `when`, the checks of a loop, a look at what a round left."""

from __future__ import annotations

import asyncio
from typing import Any

from runs.drivers import clean
from runs.drivers.context import Context
from runs.engines.fingerprint import fingerprint
from runs.kernel import loop_events
from runs.kernel.conditions import ConditionResult
from runs.kernel.errors import LoopError, as_loop_error
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.jsonable import JSONValue, digest_hex, snapshot
from runs.kernel.loop_events import AFTER, COMPLETE, Found
from runs.kernel.outcomes import failing
from runs.kernel.slots import WHEN
from runs.kernel.state import RunState
from runs.shapes.job import Job, Loop, check_at, loop_at


def run_check(job: Job, path: Path, task: str, state: RunState, ctx: Context) -> Found | LoopError:
    """What the task at `path` finds; whatever it raises comes back as a typed error."""
    try:
        ctx.remember_entry()
        if task in (AFTER, COMPLETE):
            loop = loop_at(job, path, state.loops)
            assert loop is not None
            return _look(loop, ctx) if task == AFTER else _complete(loop, ctx)
        condition = check_at(job, path, task, state.loops)
        assert condition is not None
        return clean.result(ctx, condition(ctx, ctx.last_outcome))
    except (Exception, SystemExit, asyncio.CancelledError) as raised:  # noqa: BLE001 - R118, R165
        if task == WHEN:
            return clean.error(ctx, as_loop_error(raised, fallback="BODY", phase="body"))
        fallback = "ABORTED" if ctx.signal.is_set() else "VALIDATION"
        error = clean.error(ctx, as_loop_error(raised, fallback=fallback))
        error.phase = error.phase or loop_events.phase_of(task)
        return error


def _look(loop: Loop, ctx: Context) -> dict[str, JSONValue]:
    """Call `on_iteration`, then see what the round changed (runs.md R152, R168)."""
    if loop.on_iteration is not None:
        ctx.call(loop.on_iteration)
    seen: dict[str, JSONValue] = {}
    rule = loop.shape.no_progress
    if rule is not None and rule.workspace:
        found = fingerprint(ctx.workspace.dir)
        seen |= {} if found is None else {"workspace": found}
    if loop.signal is not None:
        seen["signal"] = digest_hex(snapshot(ctx.call(loop.signal)))
    return seen


def _complete(loop: Loop, ctx: Context) -> dict[str, JSONValue]:
    assert loop.on_complete is not None
    ctx.call(loop.on_complete)
    return {}


def check_events(
    path: Path, task: str, state: RunState, found: Found | LoopError, now: int
) -> list[Event]:
    """The events that record what a check found."""
    if task != WHEN:
        iteration = state.loops[path].iteration
        return loop_events.ended(path, task, iteration, found, now)
    if isinstance(found, ConditionResult):
        told: dict[str, Any] = {"label": WHEN, "iteration": 0, "result": found.to_json()}
        return [Event(EventKind.CONDITION, path, told, ts=now)]
    assert isinstance(found, LoopError)
    # A `when` that raised is its node's failure (runs.md R118).
    done = {
        "node": path[-1],
        "phase": "done",
        "attempt": state.scopes[path[:-1]].nodes[path[-1]].attempt,
        "outcome": failing(found).to_json(),
    }
    shown = {"message": found.message, "code": found.code}
    return [
        Event(EventKind.ERROR, path, shown, ts=now),
        Event(EventKind.NODE, path[:-1], done, ts=now),
    ]
