"""A step with an environment of its own (runs.md R128, engines.md E131)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runs.kernel.errors import DeclarationError
from runs.shapes.job import Job, Leaf


def with_environment(job: Job, environment: Any) -> Job:
    """The same step, run with the environment up for its workspace; its shape stays."""
    if not isinstance(job, Leaf):
        raise DeclarationError("an environment of its own is for a step.")
    return replace(job, body=lambda ctx: ctx.in_environment(environment, job.body))


def check_environment(graph: str, environment: Any) -> None:
    """Raise DeclarationError for what cannot be brought up."""
    if environment is not None and not callable(getattr(environment, "up", None)):
        raise DeclarationError(f"the environment of graph {graph!r} has no up(workspace, cancel).")
