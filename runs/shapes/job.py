"""The job: what every step and every shape is to its author, `(ctx) -> Outcome`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.kernel.conditions import Condition
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.gate import CallbackRequest
from runs.kernel.graph import GraphShape, LeafShape, Shape
from runs.kernel.outcomes import Outcome, failing, passing
from runs.kernel.redact import redact
from runs.kernel.sources import code_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A body's request to wait for an answer to this question; the record binds it to the step."""

    request: CallbackRequest
    routing: Mapping[str, Any]


Body = Callable[[Any], Any]


class Job:
    """A declared job. Calling it does its work in the caller's own thread."""

    shape: Shape

    def __call__(self, ctx: Any) -> Any:
        raise NotImplementedError  # pragma: no cover - both kinds below say how


@dataclass(frozen=True, eq=False)
class Leaf(Job):
    """One step's work: the body is the author's code, the shape is what the record knows."""

    shape: LeafShape
    body: Body
    declared: bool = True

    def __call__(self, ctx: Any) -> Any:
        return self.body(ctx)


@dataclass(frozen=True, eq=False)
class Graph(Job):
    """A graph of jobs; the driver walks it, no worker is held by it."""

    shape: GraphShape
    jobs: Mapping[str, Job]
    whens: Mapping[str, Condition] = field(default_factory=dict)

    def __call__(self, ctx: Any) -> Any:
        return ctx.run_graph(self)


def to_job(given: Any) -> Job:
    """A job as it is; a bare function `(ctx) -> Outcome` as a hand-written one."""
    if isinstance(given, Job):
        return given
    if callable(given):
        inner = getattr(given, "__obversa_job__", None)
        name = str(getattr(given, "__name__", type(given).__name__)).strip("<>")
        if isinstance(inner, Job) and isinstance(inner.shape, LeafShape):
            return Leaf(inner.shape, given)
        return Leaf(LeafShape(kind="job", label=name, code=code_digest(given)), given, False)
    raise DeclarationError(f"{given!r} is no job: give a step, a shape or a function of ctx.")


def job_at(job: Job, path: tuple[str, ...]) -> Job | None:
    """The job whose slot stands at `path` (graph name, node name, ...)."""
    while path:
        if not isinstance(job, Graph) or len(path) < 2 or path[0] != job.shape.name:
            return None
        inner = job.jobs.get(path[1])
        if inner is None:
            return None
        job, path = inner, path[2:]
    return job


def when_at(job: Job, path: tuple[str, ...]) -> Condition | None:
    """The condition of the node at `path`."""
    owner = job_at_graph(job, path[:-1])
    return None if owner is None else owner.whens.get(path[-1])


def job_at_graph(job: Job, path: tuple[str, ...]) -> Graph | None:
    """The graph whose scope stands at `path` (which ends with the graph's own name)."""
    found = job_at(job, path[:-1])
    return found if isinstance(found, Graph) and found.shape.name == path[-1] else None


def outcome_of(label: str, value: Any) -> Outcome:
    """What a function returned as an outcome: nothing, a line, or an outcome (runs.md R32, R33)."""
    if value is None:
        return passing(label)
    if isinstance(value, str):
        return passing(value)
    if isinstance(value, Outcome):
        return value
    if isinstance(value, Mapping) and "status" in value:
        try:
            return Outcome.from_json(value)
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
    shown = f"{type(value).__name__} {repr(value)[:200]}"
    text = f"the function of {label!r} returned {shown}, which is no outcome."
    return failing(LoopError("VALIDATION", redact(text), phase="body"))
