"""What an author of workflows writes with. Names load on first use; none of them loads Django."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runs.drivers.errors import RunBusy
    from runs.drivers.jsonl import read_record
    from runs.drivers.memory import arun, run
    from runs.drivers.notifier import Notifier, notifier
    from runs.drivers.signal import Signal
    from runs.drivers.supervision.registry import list_runs, read_run, run_progress
    from runs.engines.briefs import brief_from_file
    from runs.engines.fallback import fallback_engine
    from runs.engines.preflight import format_preflight, preflight, preflight_engine
    from runs.kernel.annotations import line_comments
    from runs.kernel.conditions import (
        all_of,
        always,
        any_of,
        describe_conditions,
        failed,
        never,
        not_,
        passed,
        predicate,
        to_condition,
    )
    from runs.kernel.confidence import confidence_from_text, last_decision_line
    from runs.kernel.errors import LoopError
    from runs.kernel.failures import LANE_DEAD_FAILURES, classify_engine_failure
    from runs.kernel.interactions import Interaction
    from runs.kernel.judging import (
        body_passed,
        last_gate_brief,
        min_confidence,
        quorum,
        sampled,
    )
    from runs.kernel.outcomes import (
        EXIT_PAUSED,
        Finding,
        Outcome,
        exit_code_for,
        kickback,
        revision_request,
    )
    from runs.kernel.questions import Question
    from runs.kernel.replies import outcome_from_agent_text
    from runs.kernel.seats import SeatIdentity, TeamSeat, model_identity
    from runs.kernel.tool_errors import ToolFailed, ToolRefused
    from runs.kernel.turns import RECORDED_ENGINE_USAGE, AgentRequest, AgentResult, EngineError
    from runs.publishing import publish
    from runs.report.cost import cost_report, format_cost_report
    from runs.report.lines import format_event
    from runs.report.render import render_record
    from runs.report.summary import summarize_record
    from runs.shapes.agent_check import agent_check
    from runs.shapes.agent_job import agent_job
    from runs.shapes.approval import approval
    from runs.shapes.brief import Brief
    from runs.shapes.confidence_condition import confidence_condition
    from runs.shapes.dag import Node, PipelineStage, dag, parallel, pipeline, sequence
    from runs.shapes.env import with_env
    from runs.shapes.human_review import human_review
    from runs.shapes.isolating import isolated
    from runs.shapes.loop import loop
    from runs.shapes.panel import review_panel
    from runs.shapes.person import person
    from runs.shapes.plan import assert_graph, copy_job_meta, job_meta, render_plan
    from runs.shapes.proving import prove
    from runs.shapes.ratchet import ratchet
    from runs.shapes.review_context import review_context
    from runs.shapes.routers import http_router
    from runs.shapes.stage import stage
    from runs.shapes.steps import command_job, command_succeeds, define_job, fn_job, gate_job
    from runs.shapes.tool import ToolCall, destructive, external_write, tool
    from runs.shapes.workflow import workflow
    from runs.shapes.write_scope import write_scope

__all__ = [
    "EXIT_PAUSED",
    "LANE_DEAD_FAILURES",
    "RECORDED_ENGINE_USAGE",
    "AgentRequest",
    "AgentResult",
    "Brief",
    "EngineError",
    "Finding",
    "Interaction",
    "LoopError",
    "Node",
    "Notifier",
    "Outcome",
    "PipelineStage",
    "Question",
    "RunBusy",
    "SeatIdentity",
    "Signal",
    "TeamSeat",
    "ToolCall",
    "ToolFailed",
    "ToolRefused",
    "agent_check",
    "agent_job",
    "all_of",
    "always",
    "any_of",
    "approval",
    "arun",
    "assert_graph",
    "body_passed",
    "brief_from_file",
    "classify_engine_failure",
    "command_job",
    "command_succeeds",
    "confidence_condition",
    "confidence_from_text",
    "copy_job_meta",
    "cost_report",
    "dag",
    "define_job",
    "describe_conditions",
    "destructive",
    "exit_code_for",
    "external_write",
    "failed",
    "fallback_engine",
    "fn_job",
    "format_cost_report",
    "format_event",
    "format_preflight",
    "gate_job",
    "http_router",
    "human_review",
    "isolated",
    "job_meta",
    "kickback",
    "last_decision_line",
    "last_gate_brief",
    "line_comments",
    "list_runs",
    "loop",
    "min_confidence",
    "model_identity",
    "never",
    "not_",
    "notifier",
    "outcome_from_agent_text",
    "parallel",
    "passed",
    "person",
    "pipeline",
    "predicate",
    "preflight",
    "preflight_engine",
    "prove",
    "publish",
    "quorum",
    "ratchet",
    "read_record",
    "read_run",
    "render_plan",
    "render_record",
    "review_context",
    "review_panel",
    "revision_request",
    "run",
    "run_progress",
    "sampled",
    "sequence",
    "stage",
    "summarize_record",
    "to_condition",
    "tool",
    "with_env",
    "workflow",
    "write_scope",
]

_NAMES_IN = {
    "runs.drivers.errors": ("RunBusy",),
    "runs.drivers.jsonl": ("read_record",),
    "runs.drivers.memory": ("arun", "run"),
    "runs.drivers.notifier": ("Notifier", "notifier"),
    "runs.drivers.signal": ("Signal",),
    "runs.drivers.supervision.registry": ("list_runs", "read_run", "run_progress"),
    "runs.engines.briefs": ("brief_from_file",),
    "runs.engines.fallback": ("fallback_engine",),
    "runs.engines.preflight": ("format_preflight", "preflight", "preflight_engine"),
    "runs.kernel.annotations": ("line_comments",),
    "runs.kernel.conditions": (
        "all_of",
        "always",
        "any_of",
        "describe_conditions",
        "failed",
        "never",
        "not_",
        "passed",
        "predicate",
        "to_condition",
    ),
    "runs.kernel.confidence": ("confidence_from_text", "last_decision_line"),
    "runs.kernel.errors": ("LoopError",),
    "runs.kernel.failures": ("LANE_DEAD_FAILURES", "classify_engine_failure"),
    "runs.kernel.interactions": ("Interaction",),
    "runs.kernel.judging": (
        "body_passed",
        "last_gate_brief",
        "min_confidence",
        "quorum",
        "sampled",
    ),
    "runs.kernel.outcomes": (
        "EXIT_PAUSED",
        "Finding",
        "Outcome",
        "exit_code_for",
        "kickback",
        "revision_request",
    ),
    "runs.kernel.questions": ("Question",),
    "runs.kernel.replies": ("outcome_from_agent_text",),
    "runs.kernel.seats": ("SeatIdentity", "TeamSeat", "model_identity"),
    "runs.kernel.tool_errors": ("ToolFailed", "ToolRefused"),
    "runs.kernel.turns": ("AgentRequest", "AgentResult", "EngineError", "RECORDED_ENGINE_USAGE"),
    "runs.publishing": ("publish",),
    "runs.report.cost": ("cost_report", "format_cost_report"),
    "runs.report.lines": ("format_event",),
    "runs.report.render": ("render_record",),
    "runs.report.summary": ("summarize_record",),
    "runs.shapes.agent_check": ("agent_check",),
    "runs.shapes.agent_job": ("agent_job",),
    "runs.shapes.approval": ("approval",),
    "runs.shapes.brief": ("Brief",),
    "runs.shapes.confidence_condition": ("confidence_condition",),
    "runs.shapes.dag": ("Node", "PipelineStage", "dag", "parallel", "pipeline", "sequence"),
    "runs.shapes.env": ("with_env",),
    "runs.shapes.human_review": ("human_review",),
    "runs.shapes.isolating": ("isolated",),
    "runs.shapes.loop": ("loop",),
    "runs.shapes.panel": ("review_panel",),
    "runs.shapes.person": ("person",),
    "runs.shapes.plan": ("assert_graph", "copy_job_meta", "job_meta", "render_plan"),
    "runs.shapes.proving": ("prove",),
    "runs.shapes.ratchet": ("ratchet",),
    "runs.shapes.review_context": ("review_context",),
    "runs.shapes.routers": ("http_router",),
    "runs.shapes.stage": ("stage",),
    "runs.shapes.steps": ("command_job", "command_succeeds", "define_job", "fn_job", "gate_job"),
    "runs.shapes.workflow": ("workflow",),
    "runs.shapes.tool": ("ToolCall", "destructive", "external_write", "tool"),
    "runs.shapes.write_scope": ("write_scope",),
}
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
