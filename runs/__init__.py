"""What an author of workflows writes with. Names load on first use; none of them loads Django."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runs.drivers.memory import arun, run
    from runs.kernel.conditions import all_of, any_of, failed, not_, passed
    from runs.kernel.errors import LoopError
    from runs.kernel.outcomes import (
        EXIT_PAUSED,
        Finding,
        Outcome,
        exit_code_for,
        kickback,
        revision_request,
    )
    from runs.publishing import publish
    from runs.shapes.dag import Node, PipelineStage, dag, parallel, pipeline, sequence
    from runs.shapes.jobs import (
        approval,
        command_job,
        copy_job_meta,
        define_job,
        fn_job,
        gate_job,
        job_meta,
    )
    from runs.shapes.plan import assert_graph, render_plan

__all__ = [
    "EXIT_PAUSED",
    "Finding",
    "LoopError",
    "Node",
    "Outcome",
    "PipelineStage",
    "all_of",
    "any_of",
    "approval",
    "arun",
    "assert_graph",
    "command_job",
    "copy_job_meta",
    "dag",
    "define_job",
    "exit_code_for",
    "failed",
    "fn_job",
    "gate_job",
    "job_meta",
    "kickback",
    "not_",
    "parallel",
    "passed",
    "pipeline",
    "publish",
    "render_plan",
    "revision_request",
    "run",
    "sequence",
]

_NAMES_IN = {
    "runs.drivers.memory": ("arun", "run"),
    "runs.kernel.conditions": ("all_of", "any_of", "failed", "not_", "passed"),
    "runs.kernel.errors": ("LoopError",),
    "runs.kernel.outcomes": (
        "EXIT_PAUSED",
        "Finding",
        "Outcome",
        "exit_code_for",
        "kickback",
        "revision_request",
    ),
    "runs.publishing": ("publish",),
    "runs.shapes.dag": ("Node", "PipelineStage", "dag", "parallel", "pipeline", "sequence"),
    "runs.shapes.jobs": (
        "approval",
        "command_job",
        "copy_job_meta",
        "define_job",
        "fn_job",
        "gate_job",
        "job_meta",
    ),
    "runs.shapes.plan": ("assert_graph", "render_plan"),
}
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
