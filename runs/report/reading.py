"""A record read once, from its first event to its last: its nodes, their runs, and what was said.

Only the nodes of the outermost graph are told apart; what happened below one of them belongs to
it (runs.md R279, R280).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from runs.kernel.events import Event
from runs.kernel.numbers import count_of
from runs.kernel.spending import KIND, NOTHING, Spent
from runs.report.parts import Line, NodeRun
from runs.report.text import BETWEEN, Wire, facts, joined, moment_of, path_of, text, wire_of
from runs.report.words import kickback, told

Path = tuple[str, ...]

# They say nothing that the record's headline or a node's run does not say.
_SILENT: Final = frozenset(
    {
        "engine:text",
        "engine:thinking",
        "heartbeat",
        "interaction:checkpoint",
        "job:rework",
        "budget:set-aside",
        "budget:freed",
        "workflow:start",
        "job:start",
        "step:ready",
        "loop:progress",
        "loop:complete",
        "callback-routed",
        "record:export",
    }
)


@dataclass(slots=True)
class Reading:
    """What a record says as a whole."""

    run_id: str = ""
    root: str = ""
    workflow: str = ""
    graph: Path | None = None
    started: int | None = None
    ended: int | None = None
    outcome: Wire | None = None
    told_usage: Wire | None = None
    told_total: Wire | None = None
    spent: Spent = NOTHING
    sessions: int = 0
    monitor: str = ""
    nodes: dict[str, list[NodeRun]] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    # Send-backs whose target has not run again yet, and what was said of a node before its run.
    awaited: dict[str, Wire] = field(default_factory=dict)
    early: dict[str, list[Line]] = field(default_factory=dict)
    graphs: set[Path] = field(default_factory=set)
    # Where each question was asked: what happens to it later may name no place.
    asked: dict[str, Path] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The run's id, else the name of the first graph."""
        return self.run_id or (self.graph[-1] if self.graph else "")

    @property
    def usage(self) -> Wire:
        """What the end says of the record, else the sum of its calls."""
        told = self.told_total
        if told is None and self.sessions <= 1:
            told = self.told_usage
        if told is not None:
            return told
        return self.spent.usage() if self.spent.calls else self.told_usage or self.spent.usage()

    def take(self, event: Wire) -> None:
        """Read one event."""
        at = moment_of(event.get("ts"))
        kind, path = text(event.get("kind")), path_of(event.get("path"))
        self.root = self.root or (path[0] if path else "")
        match kind:
            case "run:start":
                self._start(event, at)
            case "run:end":
                self._end(event, at)
            case "monitor":
                self.monitor = text(event.get("url"))
            case "dag:start" | "dag:node" | "dag:kickback" | "dag:end":
                self._graph(kind, event, path, at)
            case _ if kind not in _SILENT:
                self._other(kind, event, path)

    def close(self) -> None:
        """Tell what never came to its end."""
        self.lines += [Line(kickback(event), whole=True) for event in self.awaited.values()]
        for name, lines in self.early.items():
            self.lines += [Line(f"{name}: {line.text}") for line in lines]

    # --- the run ---------------------------------------------------------------------------------

    def _start(self, event: Wire, at: int | None) -> None:
        self.sessions += 1
        self.run_id = self.run_id or text(event.get("runId"))
        self.workflow = self.workflow or text(event.get("workflow"))
        if self.sessions == 1:
            self.started = at
            return
        # What ended goes on: until the next end there is none.
        self.ended = self.outcome = self.told_usage = self.told_total = None
        self.lines.append(Line(f"session {count_of(event.get('session')) or self.sessions}"))

    def _end(self, event: Wire, at: int | None) -> None:
        self.run_id = self.run_id or text(event.get("runId"))
        self.ended, self.outcome = at, _object(event.get("outcome"))
        self.told_usage = _object(event.get("usage"))
        self.told_total = _object(event.get("totalUsage"))

    # --- its graph -------------------------------------------------------------------------------

    def _graph(self, kind: str, event: Wire, path: Path, at: int | None) -> None:
        self.graphs.add(path)
        if self.graph is None:
            self.graph = path
        if path == self.graph:
            if kind == "dag:node":
                self._node(event, at)
            elif kind == "dag:kickback":
                self._kickback(event)
        elif kind == "dag:kickback" or (kind == "dag:node" and event.get("phase") != "start"):
            self._say(event, path, told(event)[1], whole=kind == "dag:kickback")

    def _node(self, event: Wire, at: int | None) -> None:
        name, phase = text(event.get("node")), text(event.get("phase"))
        attempt = count_of(event.get("attempt")) or None
        runs = self.nodes.setdefault(name, [])
        if phase == "start":
            self._open(name, attempt).started = at
            return
        run = runs[-1] if runs else None
        # A later end of the same attempt is the one that stands (R208).
        if run is None or phase == "skip" or (run.outcome is not None and run.attempt != attempt):
            run = self._open(name, attempt)
        run.ended, run.outcome = at, _object(event.get("outcome"))
        if text(facts(run.outcome).get("status")) == "paused":
            self._pause(run)

    def _open(self, name: str, attempt: int | None) -> NodeRun:
        run = NodeRun(attempt, lines=self.early.pop(name, []))
        # The first attempt of a later session is not what a send-back asked for.
        if attempt != 1:
            run.kickback = self.awaited.pop(name, None)
        self.nodes[name].append(run)
        return run

    def _pause(self, run: NodeRun) -> None:
        """The question of a pause as a line, unless it stands there already."""
        why = text(facts(run.outcome).get("summary"))
        questions = [line.text.partition(": ")[2] for line in run.lines if line.whole]
        if why and not any(question and question in why for question in questions):
            run.lines.append(Line(f"paused: {why}", whole=True))

    def _kickback(self, event: Wire) -> None:
        target = text(event.get("to"))
        if event.get("accepted") is True:
            self.awaited[target] = event
            return
        runs = self.nodes.get(text(event.get("from")))
        lines = runs[-1].lines if runs else self.lines
        lines.append(Line(kickback(event), whole=True))

    # --- everything else -------------------------------------------------------------------------

    def _other(self, kind: str, event: Wire, path: Path) -> None:
        if kind.startswith("callback-"):
            path = self._place_of(event, path)
        run = self._run_at(path)
        if kind == KIND:
            self.spent = self.spent.plus(event)
            if run is not None:
                run.calls += 1
        elif kind == "engine:tool" and run is not None:
            run.use(event)
        elif kind == "job:end" and path[:-1] in self.graphs:
            return
        elif kind == "condition:result" and self._is_node(path) and _is_over(run):
            self.early.setdefault(path[-1], []).append(Line(told(event)[1]))
        else:
            self._say(event, path, told(event)[1], whole=_is_pause(kind, event))

    def _place_of(self, event: Wire, path: Path) -> Path:
        """Where the question was asked that this happened to."""
        request = facts(event.get("request"))
        if request:
            self.asked[text(request.get("requestId"))] = path
        return path or self.asked.get(text(event.get("requestId")), path)

    def _say(self, event: Wire, path: Path, words: str, *, whole: bool = False) -> None:
        """A line at the node it happened under, with what is below that node before it."""
        run = self._run_at(path)
        if run is None:
            self.lines.append(Line(joined(BETWEEN.join(path), words, by=": "), whole=whole))
            return
        assert self.graph is not None
        below = BETWEEN.join(path[len(self.graph) + 1 :])
        run.lines.append(Line(joined(below, words, by=": "), whole=whole))

    def _is_node(self, path: Path) -> bool:
        """Whether the path is a node's of the graph itself; an empty path is nobody's."""
        return bool(path) and path[:-1] == self.graph

    def _run_at(self, path: Path) -> NodeRun | None:
        graph = self.graph
        if graph is None or path[: len(graph)] != graph or len(path) <= len(graph):
            return None
        runs = self.nodes.get(path[len(graph)])
        return runs[-1] if runs else None


def read(events: Iterable[Event | Wire]) -> Reading:
    """Read a record, whole or as far as it goes."""
    reading = Reading()
    for event in events:
        reading.take(wire_of(event))
    reading.close()
    return reading


def _object(value: Any) -> Wire | None:
    return facts(value) or None


def _is_over(run: NodeRun | None) -> bool:
    """Whether the next thing about the node is about its next run."""
    return run is None or run.outcome is not None


def _is_pause(kind: str, event: Wire) -> bool:
    if kind in ("callback-requested", "limit:pause", "run:held"):
        return True
    return text(facts(event.get("outcome")).get("status")) == "paused"
