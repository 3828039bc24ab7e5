"""The job: what every step and every shape is to its author, `(ctx) -> Outcome`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.kernel.conditions import Condition
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.gate import CallbackRequest
from runs.kernel.graph import GraphShape, LeafShape, LoopShape, Shape
from runs.kernel.outcomes import Outcome, failing, passing
from runs.kernel.places import NO_LOOPS, Loops, trail
from runs.kernel.redact import redact
from runs.kernel.slots import WHEN
from runs.kernel.sources import code_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A body's request to wait for an answer to this question; the record binds it to the step.

    `others` are asked together with it.
    """

    request: CallbackRequest
    routing: Mapping[str, Any]
    others: tuple[Asking, ...] = ()


Body = Callable[[Any], Any]


class Job(ABC):
    """A declared job. Calling it does its work in the caller's own thread."""

    shape: Shape

    @abstractmethod
    def __call__(self, ctx: Any) -> Any: ...


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


@dataclass(frozen=True, eq=False)
class Loop(Job):
    """A body in rounds; `checks` holds its conditions by the name of their check."""

    shape: LoopShape
    body: Job
    review: Job | None = None
    checks: Mapping[str, Condition] = field(default_factory=dict)
    signal: Body | None = None
    on_iteration: Body | None = None
    on_complete: Body | None = None

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


def job_at(job: Job, path: tuple[str, ...], loops: Loops = NO_LOOPS) -> Job | None:
    """The job whose slot stands at `path`; the state of the loops tells a body from a review."""
    way = trail(job.shape, path, loops)
    for step in way or ():
        if isinstance(job, Graph) and step.node is not None:
            job = job.jobs[step.node.name]
        elif isinstance(job, Loop):
            job = job.review if step.in_review and job.review is not None else job.body
    return None if way is None else job


def loop_at(job: Job, path: tuple[str, ...], loops: Loops = NO_LOOPS) -> Loop | None:
    """The loop whose rounds stand at `path` (which ends with the loop's own name)."""
    found = job_at(job, path[:-1], loops)
    return found if isinstance(found, Loop) and found.shape.name == path[-1] else None


def check_at(
    job: Job, path: tuple[str, ...], task: str, loops: Loops = NO_LOOPS
) -> Condition | None:
    """The condition of this check: a node's `when`, or one of a loop's."""
    if task != WHEN:
        loop = loop_at(job, path, loops)
        return None if loop is None else loop.checks.get(task)
    owner = job_at(job, path[:-2], loops)
    if not isinstance(owner, Graph) or owner.shape.name != path[-2]:
        return None
    return owner.whens.get(path[-1])


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
