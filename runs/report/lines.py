"""One event as the line a person reads (runs.md R275-R277)."""

from __future__ import annotations

from typing import Any

from runs.kernel.events import Event
from runs.kernel.spending import KIND
from runs.report.text import BETWEEN, Wire, joined, path_of, wire_of
from runs.report.usage import run_tokens
from runs.report.words import told

STREAMED = frozenset({"engine:text", "engine:thinking"})


def format_event(event: Event | Wire, totals: Any = None) -> str:
    """The event on one line: its path, a mark, and what happened in words.

    `totals` is what the run used so far (`inputTokens`, `outputTokens`, `cacheReadInputTokens`,
    `unmeasuredCalls`); a usage line then tells it too. Streamed text gives an empty string. Reads
    any JSON object and never raises.
    """
    wire = wire_of(event)
    kind = wire.get("kind")
    if isinstance(kind, str) and kind in STREAMED:
        return ""
    mark, words = told(wire)
    if kind == KIND and (whole := run_tokens(totals)):
        words = f"{words} (run {whole})"
    return joined(BETWEEN.join(path_of(wire.get("path"))), mark, words)
