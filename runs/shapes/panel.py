"""Several reviewers on one attempt (workflows.md section 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from runs.kernel.errors import DeclarationError
from runs.kernel.graph import DEFAULT_CONCURRENCY, GraphShape, NodeShape
from runs.kernel.panels import PanelRule
from runs.shapes.job import Graph, Job, to_job
from runs.shapes.steps import gate_job

_KEYS = {"name", "job", "review"}


def review_panel(
    *,
    reviewers: Iterable[Any],
    label: str = "review-panel",
    pass_: int | Literal["all"] = "all",  # noqa: S107 - the seeds' `pass`, no password
    target: str | None = None,
    rerun: str | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
    actionable_scopes: Sequence[str] | None = None,
) -> Job:
    """A step that passes when `pass_` of its reviewers agree, "all" or a number of them.

    A reviewer is a mapping with `job` (its pass is a yes) or `review` (a condition), and a `name`;
    or the job itself. The findings of a failing panel go to `target`. Raises DeclarationError.
    """
    if not isinstance(label, str) or not label:
        raise DeclarationError("a review panel needs a label.")
    if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
        raise DeclarationError(f"concurrency of panel {label!r} is no count of 1 or more.")
    jobs: dict[str, Job] = {}
    for position, given in enumerate(reviewers):
        name, job = _reviewer(label, position, given)
        if name in jobs:
            raise DeclarationError(f"panel {label!r} has two reviewers named {name!r}.")
        jobs[name] = job
    if not jobs:
        raise DeclarationError(f"panel {label!r} has no reviewers.")
    rule = PanelRule(
        required=_required(label, pass_, len(jobs)),
        needs_all=not isinstance(pass_, int),
        target=target,
        rerun=rerun,
        scopes=None if actionable_scopes is None else tuple(actionable_scopes),
    )
    shape = GraphShape(
        kind="reviewPanel",
        name=label,
        nodes=tuple(
            NodeShape(name=name, job=job.shape, optional=True) for name, job in jobs.items()
        ),
        concurrency=concurrency,
        stop_on_error=False,
        panel=rule,
    )
    return Graph(shape, jobs)


def _reviewer(label: str, position: int, given: Any) -> tuple[str, Job]:
    if not isinstance(given, Mapping):
        return f"reviewer-{position}", to_job(given)
    if unknown := sorted(map(str, set(given) - _KEYS)):
        raise DeclarationError(f"a reviewer of {label!r} has unknown keys: {', '.join(unknown)}.")
    name = given.get("name") or f"reviewer-{position}"
    if not isinstance(name, str):
        raise DeclarationError(f"the name of a reviewer of {label!r} is no text.")
    if ("job" in given) == ("review" in given):
        raise DeclarationError(f"reviewer {name!r} of {label!r} takes a job or a review.")
    return name, to_job(given["job"]) if "job" in given else gate_job(name, given["review"])


def _required(label: str, given: int | str, count: int) -> int:
    if given == "all":
        return count
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= count:
        raise DeclarationError(f'pass_ of panel {label!r} is "all" or a number from 1 to {count}.')
    return given
