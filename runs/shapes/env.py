"""Variables for a job and everything beneath it (runs.md R74-R76)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from runs.kernel.conditions import Condition, ConditionResult, is_data
from runs.kernel.errors import DeclarationError
from runs.kernel.outcomes import Outcome
from runs.shapes.job import Body, Graph, Job, Leaf, Loop, to_job

Enter = Callable[[Any], Any]


def with_env(first: Any, second: Any) -> Job:
    """The job with these variables set for its commands, checks and engines (runs.md R74).

    `with_env(job, env)` and `with_env(env, job)` are the same (design D24). It adds to the
    process's environment, never takes away from it and never changes it; the inner overlay wins
    over the outer one, and a command's own `env` over both. Raises DeclarationError (R76).
    """
    overlay, given = (first, second) if isinstance(first, Mapping) else (second, first)
    if not isinstance(overlay, Mapping):
        raise DeclarationError("with_env() takes a job and a mapping of variables.")
    variables = dict(overlay)
    for name, value in variables.items():
        _check(name, value)
    return entered(to_job(given), lambda ctx: ctx.with_env(variables))


def _check(name: Any, value: Any) -> None:
    if not isinstance(name, str) or not name or "=" in name or "\0" in name:
        raise DeclarationError(f"with_env() has no use for a variable named {name!r}.")
    if not isinstance(value, str) or "\0" in value:
        kind = type(value).__name__
        raise DeclarationError(f"with_env() sets {name!r} to a {kind}; a value is text.")


def entered(job: Job, enter: Enter) -> Job:
    """The same job, every body and check in it called with `enter(ctx)`; its shape stays."""
    match job:
        case Leaf():
            return replace(job, body=lambda ctx: job.body(enter(ctx)))
        case Graph():
            jobs = {name: entered(inner, enter) for name, inner in job.jobs.items()}
            whens = {name: _entered_check(when, enter) for name, when in job.whens.items()}
            return replace(job, jobs=jobs, whens=whens)
        case Loop():
            return replace(
                job,
                body=entered(job.body, enter),
                review=None if job.review is None else entered(job.review, enter),
                checks={name: _entered_check(check, enter) for name, check in job.checks.items()},
                signal=_entered_call(job.signal, enter),
                on_iteration=_entered_call(job.on_iteration, enter),
                on_complete=_entered_call(job.on_complete, enter),
            )
        case _:
            raise DeclarationError(f"with_env() cannot reach into {type(job).__name__}.")


def _entered_call(fn: Body | None, enter: Enter) -> Body | None:
    return None if fn is None else lambda ctx: ctx.call(fn, enter(ctx))


def _entered_check(condition: Condition, enter: Enter) -> Condition:
    if is_data(condition.shape):
        return condition

    def check(ctx: Any, last: Outcome | None) -> ConditionResult:
        return condition(enter(ctx), last)

    return replace(condition, check=check)
