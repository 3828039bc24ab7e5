"""A record as data: one object for programs (runs.md R278-R281)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from runs.kernel.events import Event
from runs.kernel.numbers import number_of
from runs.report.parts import NodeRun
from runs.report.reading import Reading, read
from runs.report.text import Wire, facts, text


class ToolUse(TypedDict):
    """A tool, how often it was used, and on which distinct targets."""

    name: str
    count: int
    targets: list[str]


# A name of it is a word of Python.
SentBack = TypedDict(
    "SentBack",
    {
        "from": str | None,
        "reason": str | None,
        "count": int | None,
        "limit": int | None,
        "note": str | None,
    },
)


class RunSummary(TypedDict):
    """One run of a node; times in milliseconds since the epoch."""

    attempt: int | None
    startedAt: int | None
    endedAt: int | None
    outcome: Mapping[str, Any] | None
    kickback: SentBack | None
    engineCalls: int
    tools: list[ToolUse]
    lines: list[str]


class NodeSummary(TypedDict):
    """A node of the outermost graph and its runs in order."""

    node: str
    runs: list[RunSummary]


class UsageSummary(TypedDict):
    """Tokens of the run; null where the record does not say."""

    inputTokens: int | None
    outputTokens: int | None
    cacheReadInputTokens: int | None
    unmeasuredCalls: int | None


class RecordSummary(TypedDict):
    """What a record says; a field with no value is null."""

    name: str | None
    startedAt: int | None
    endedAt: int | None
    outcome: Mapping[str, Any] | None
    usage: UsageSummary
    monitor: str | None
    nodes: list[NodeSummary]
    lines: list[str]


def summarize_record(events: Iterable[Event | Wire]) -> RecordSummary:
    """The record as one JSON object; takes events as mappings or as `RunResult.events` has them."""
    reading = read(events)
    return {
        "name": reading.name or None,
        "startedAt": reading.started,
        "endedAt": reading.ended,
        "outcome": reading.outcome,
        "usage": usage_of(reading),
        "monitor": reading.monitor or None,
        "nodes": [
            {"node": name, "runs": [_run(run) for run in runs]}
            for name, runs in reading.nodes.items()
        ],
        "lines": [line.text for line in reading.lines],
    }


def usage_of(reading: Reading) -> UsageSummary:
    """The tokens of the whole record."""
    usage = reading.usage
    return {
        "inputTokens": _count(usage.get("inputTokens")),
        "outputTokens": _count(usage.get("outputTokens")),
        "cacheReadInputTokens": _count(usage.get("cacheReadInputTokens")),
        "unmeasuredCalls": _count(usage.get("unmeasuredCalls")),
    }


def _run(run: NodeRun) -> RunSummary:
    return {
        "attempt": run.attempt,
        "startedAt": run.started,
        "endedAt": run.ended,
        "outcome": run.outcome,
        "kickback": None if run.kickback is None else _kickback(run.kickback),
        "engineCalls": run.calls,
        "tools": [
            {"name": name, "count": tool.count, "targets": list(tool.targets)}
            for name, tool in run.tools.items()
        ],
        "lines": [line.text for line in run.lines],
    }


def _kickback(event: Wire) -> SentBack:
    given = facts(event)
    return {
        "from": text(given.get("from")) or None,
        "reason": text(given.get("reason")) or None,
        "count": _count(given.get("count")),
        "limit": _count(given.get("limit")),
        "note": text(given.get("note")) or None,
    }


def _count(value: object) -> int | None:
    number = number_of(value)
    return None if number is None else int(number)
