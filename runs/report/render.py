"""A record as a page a person scans, in Markdown (runs.md R282)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from runs.kernel.events import Event
from runs.kernel.moments import moment
from runs.report.parts import Line, NodeRun, Tool
from runs.report.phrases import ended
from runs.report.reading import Reading, read
from runs.report.summary import usage_of
from runs.report.text import Wire, facts, joined, many, span, text
from runs.report.words import kickback

_MARKER: Final = re.compile(r"^\s*(?:[-*+]|\d{1,9}[.)])\s+")


def render_record(events: Iterable[Event | Wire], line_width: int = 100) -> str:
    """The record as Markdown, ending in a newline.

    Lines are cut at `line_width` characters; questions, pauses and send-backs never are.
    """
    reading = read(events)
    blocks = [[f"# {reading.name or reading.root or 'A run'}"], _headline(reading, line_width)]
    blocks.append([_item(line, line_width) for line in reading.lines])
    for name, runs in reading.nodes.items():
        blocks.append([f"## {name or 'a node'}"])
        for number, run in enumerate(runs, 1):
            blocks += _run(run, number, line_width)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _headline(reading: Reading, width: int) -> list[str]:
    lines = []
    if reading.workflow and reading.workflow != reading.name:
        lines.append(f"Workflow: {reading.workflow}")
    lines.append(f"Started: {_time(reading.started)}")
    if reading.ended is None:
        lines.append("Ended: no end recorded")
    else:
        lines.append(joined(f"Ended: {_time(reading.ended)}", _after(reading), by=", "))
    if reading.outcome is not None:
        lines.append(f"Outcome: {_outcome(reading.outcome)}")
    lines.append(f"Tokens: {_tokens(reading)}")
    if reading.monitor:
        lines.append(f"Monitor: {reading.monitor}")
    return [_item(Line(line), width) for line in lines]


def _after(reading: Reading) -> str:
    length = _length(reading.started, reading.ended)
    return f"after {length}" if length else ""


def _outcome(outcome: Wire) -> str:
    return joined(ended(outcome), _summary(outcome), by=": ")


def _summary(outcome: Wire | None) -> str:
    return _MARKER.sub("", text(facts(outcome).get("summary")))


def _tokens(reading: Reading) -> str:
    usage = usage_of(reading)
    cached, unknown = usage["cacheReadInputTokens"] or 0, usage["unmeasuredCalls"] or 0
    return joined(
        f"{usage['inputTokens'] or 0:,} in",
        f"{usage['outputTokens'] or 0:,} out",
        f"{cached:,} from cache" if cached else "",
        f"{many(unknown, 'call')} with unknown usage" if unknown else "",
        by=", ",
    )


def _run(run: NodeRun, number: int, width: int) -> Iterator[list[str]]:
    """What sent the work back, the run's heading, and what is to say about it."""
    if run.kickback is not None:
        yield [kickback(run.kickback)]
    began = "" if run.started is None else f"at {_time(run.started)}"
    status = ended(run.outcome) or "no end recorded"
    length = _length(run.started, run.ended)
    again = f"attempt {run.attempt}" if run.attempt not in (None, number) else ""
    yield ["### " + joined(f"Run {number}: {status}", again, length, began, by=", ")]
    yield [_item(line, width) for line in _lines(run)]


def _lines(run: NodeRun) -> Iterator[Line]:
    summary = _summary(run.outcome)
    if summary and not any(_repeats(line, summary) for line in run.lines):
        yield Line(summary, whole=text(facts(run.outcome).get("status")) == "paused")
    if run.calls:
        yield Line(many(run.calls, "engine call"))
    for name, tool in run.tools.items():
        yield Line(_tool(name, tool))
    yield from run.lines


def _repeats(line: Line, summary: str) -> bool:
    """Whether the line says what the summary says."""
    asked = line.text.partition(": ")[2] if line.whole else ""
    return line.text.endswith(summary) or (asked != "" and summary.endswith(asked))


def _tool(name: str, tool: Tool) -> str:
    times = f"{name} \u00d7{tool.count}" if tool.count > 1 else name
    return joined(times, ", ".join(tool.targets), by=": ")


def _item(line: Line, width: int) -> str:
    return f"- {line.text if line.whole else _cut(line.text, max(1, width - 2))}"


def _cut(told: str, width: int) -> str:
    return told if len(told) <= width else f"{told[: width - 1]}\u2026"


def _length(start: int | None, end: int | None) -> str:
    return "" if start is None or end is None else span(max(0, end - start) / 1000)


def _time(ms: int | None) -> str:
    if ms is None:
        return "not recorded"
    return moment(ms).strftime("%Y-%m-%d %H:%M:%S UTC")
