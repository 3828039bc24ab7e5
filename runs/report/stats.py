"""What a run did, in figures (runs.md R270)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NotRequired, TypedDict

from runs.kernel.events import Event
from runs.kernel.numbers import count_of
from runs.kernel.spending import KIND, NOTHING, is_reported
from runs.report.text import Wire, facts, moment_of, path_of, text, wire_of

ROOT: Final = "(root)"


class LoopRun(TypedDict):
    """The rounds of one loop."""

    path: str
    iterations: int
    reviewsPassed: int
    reviewsFailed: int
    lastStatus: NotRequired[str]


class ModelUse(TypedDict):
    """The calls of one model."""

    model: str
    calls: int
    reportedCalls: int
    unknownUsageCalls: int
    inputTokens: int
    outputTokens: int
    cacheCreationInputTokens: NotRequired[int]
    cacheReadInputTokens: NotRequired[int]


class ErrorSeen(TypedDict):
    """One `error` event."""

    path: str
    code: str
    message: str
    ts: int


class Stats(TypedDict):
    """The figures of a run; times in milliseconds."""

    startedAt: int
    elapsedMs: int
    loopRuns: list[LoopRun]
    models: list[ModelUse]
    totalInputTokens: int
    totalOutputTokens: int
    totalCacheCreationInputTokens: int
    totalCacheReadInputTokens: int
    totalUnmeasuredCalls: int
    agentCalls: int
    errors: list[ErrorSeen]


@dataclass
class _Counts:
    started: int | None = None
    last: int = 0
    loops: dict[tuple[str, ...], LoopRun] = field(default_factory=dict)
    models: dict[str, ModelUse] = field(default_factory=dict)
    errors: list[ErrorSeen] = field(default_factory=list)

    def take(self, event: Wire) -> None:
        at = moment_of(event.get("ts"))
        if at is not None:
            self.started = at if self.started is None else self.started
            self.last = max(self.last, at)
        kind = text(event.get("kind"))
        if kind.startswith("loop:"):
            self._loop(kind, event)
        elif kind == KIND:
            self._call(event)
        elif kind == "error":
            seen: ErrorSeen = {
                "path": path_text(event),
                "code": text(event.get("code")),
                "message": text(event.get("message")),
                "ts": at or 0,
            }
            self.errors.append(seen)

    def _loop(self, kind: str, event: Wire) -> None:
        path = path_of(event.get("path"))
        fresh: LoopRun = {
            "path": path_text(event),
            "iterations": 0,
            "reviewsPassed": 0,
            "reviewsFailed": 0,
        }
        run = self.loops.setdefault(path, fresh)
        status = text(facts(event.get("outcome")).get("status"))
        match kind:
            case "loop:iteration":
                run["iterations"] += 1
            case "loop:review" if status == "pass":
                run["reviewsPassed"] += 1
            case "loop:review":
                run["reviewsFailed"] += 1
            case "loop:end" if status:
                run["lastStatus"] = status

    def _call(self, event: Wire) -> None:
        name = text(event.get("model"))
        fresh: ModelUse = {
            "model": name,
            "calls": 0,
            "reportedCalls": 0,
            "unknownUsageCalls": 0,
            "inputTokens": 0,
            "outputTokens": 0,
        }
        model = self.models.setdefault(name, fresh)
        model["calls"] += 1
        usage = facts(event.get("usage"))
        if not is_reported(usage):
            model["unknownUsageCalls"] += 1
            return
        model["reportedCalls"] += 1
        model["inputTokens"] += count_of(usage.get("inputTokens"))
        model["outputTokens"] += count_of(usage.get("outputTokens"))
        if (written := usage.get("cacheCreationInputTokens")) is not None:
            model.setdefault("cacheCreationInputTokens", 0)
            model["cacheCreationInputTokens"] += count_of(written)
        if (read := usage.get("cacheReadInputTokens")) is not None:
            model.setdefault("cacheReadInputTokens", 0)
            model["cacheReadInputTokens"] += count_of(read)


def path_text(event: Wire) -> str:
    """The event's path as the figures name it."""
    return " / ".join(path_of(event.get("path"))) or ROOT


def stats_of(events: Iterable[Event | Wire]) -> Stats:
    """The figures of these events, which are those of one session or of a whole record."""
    counts, spent = _Counts(), NOTHING
    for wire in map(wire_of, events):
        counts.take(wire)
        if wire.get("kind") == KIND:
            spent = spent.plus(wire)
    started = counts.started or 0
    return {
        "startedAt": started,
        "elapsedMs": max(0, counts.last - started),
        "loopRuns": list(counts.loops.values()),
        "models": list(counts.models.values()),
        "totalInputTokens": spent.input_tokens,
        "totalOutputTokens": spent.output_tokens,
        "totalCacheCreationInputTokens": spent.cache_creation_tokens,
        "totalCacheReadInputTokens": spent.cache_read_tokens,
        "totalUnmeasuredCalls": spent.unmeasured_calls,
        "agentCalls": sum(model["calls"] for model in counts.models.values()),
        "errors": counts.errors,
    }
