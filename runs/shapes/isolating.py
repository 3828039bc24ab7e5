"""A step in a git worktree of its own (runs.md R68-R73)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from runs.kernel.errors import DeclarationError
from runs.kernel.outcomes import Outcome
from runs.shapes.job import Job, Leaf, to_job
from runs.shapes.plan import job_meta


def isolated(
    job: Any,
    *,
    label: str = "isolated",
    on_conflict: Literal["fail", "synthesize"] = "fail",
    record: str | Callable[[Any, Outcome], Any] | None = None,
) -> Job:
    """The step in its own worktree, on a branch `lines/<label>-<n>` from HEAD.

    A pass is committed there and merged back with a merge commit; on any other status nothing
    lands. A conflict fails the step with BODY and keeps the branch, or is resolved by the run's
    engine. `record` is the message, or makes it of `(ctx, outcome)`, for what the step left
    uncommitted. Outside a git repository the step runs in the shared workspace, with a warning.
    Graphs and loops are refused: isolate the steps inside.
    """
    inner = to_job(job)
    if not isinstance(label, str) or not label:
        raise DeclarationError("isolated() needs a label.")
    if not isinstance(inner, Leaf):
        raise DeclarationError("isolated() takes a step: isolate those inside a graph or a loop.")
    if not inner.shape.by_worker:
        raise DeclarationError("isolated() takes a step that works; a question does not.")
    if on_conflict not in ("fail", "synthesize"):
        raise DeclarationError('on_conflict of isolated() is "fail" or "synthesize".')
    if record is not None and not isinstance(record, str) and not callable(record):
        raise DeclarationError("record of isolated() is text or a function of ctx and outcome.")
    shape = replace(
        inner.shape, kind="isolated", label=label, ask=None, extra={"job": job_meta(inner)}
    )
    return Leaf(
        shape,
        lambda ctx: ctx.isolated(inner, label=label, on_conflict=on_conflict, record=record),
    )
