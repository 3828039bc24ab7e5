"""What the page shows of a run, kept up by its events (runs.md R291, R293)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from runs.drivers.jsonl import STREAMED
from runs.drivers.ports import Callbacks
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import GraphShape, LeafShape, NodeShape, Shape
from runs.kernel.jsonable import JSONValue, thaw
from runs.report.usage import run_tokens

KEPT: Final = 200


class MonitorView:
    """Hears every event of a session; `state` may be asked for from any thread."""

    def __init__(self, shape: Shape, client: Callbacks, run_id: str | None) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._told: dict[str, JSONValue] = {"name": _name(shape), "status": "running"}
        if run_id is not None:
            self._told["runId"] = run_id
        self._at, graph = outermost(shape)
        nodes = () if graph is None else graph.nodes
        self._nodes: dict[str, dict[str, Any]] = {node.name: _declared(node) for node in nodes}
        self._kickbacks: list[dict[str, Any]] = []
        self.usage: Callable[[], Mapping[str, JSONValue]] = dict
        """What the run has used so far, in the form of `run:end.usage`; its session says it."""
        self._events: deque[dict[str, Any]] = deque(maxlen=KEPT)

    def write(self, event: Event) -> None:
        """Take one event in."""
        if event.kind in STREAMED:
            return
        with self._lock:
            self._events.append(thaw(event.to_wire()))
            self._take(event)

    def close(self) -> None:
        """The page stays up after the run, until somebody closes it."""

    def state(self) -> dict[str, Any]:
        """The answer to `GET /state`."""
        pending = [
            {
                "requestId": request.request_id,
                "decisionText": request.decision_text,
                "input": thaw(request.input),
                "responseSchema": thaw(request.response_schema),
            }
            for request in self._client.list_pending()
        ]
        usage = dict(self.usage())
        with self._lock:
            return {
                **self._told,
                "nodes": {name: dict(node) for name, node in self._nodes.items()},
                "kickbacks": list(self._kickbacks),
                "pending": pending,
                "usage": usage,
                "usageSummary": run_tokens(usage),
                "events": list(self._events),
            }

    def _take(self, event: Event) -> None:
        if event.kind == EventKind.RUN_END:
            self._told |= {"status": "done", "outcome": thaw(event.fields["outcome"])}
        elif event.path == self._at:
            self._take_of_graph(event)

    def _take_of_graph(self, event: Event) -> None:
        if event.kind == EventKind.GRAPH_START:
            # A graph that is a loop's body begins again: its nodes are still to come.
            for node in self._nodes.values():
                node["phase"] = "declared"
                node.pop("outcome", None)
        elif event.kind == EventKind.SEND_BACK:
            names = ("from", "to", "reason", "accepted", "count", "limit", "note")
            told = {name: thaw(event.fields[name]) for name in names if name in event.fields}
            self._kickbacks.append(told)
        elif event.kind == EventKind.NODE:
            self._take_of_node(self._nodes.get(str(event.fields["node"])), event)

    @staticmethod
    def _take_of_node(node: dict[str, Any] | None, event: Event) -> None:
        if node is None:
            return
        match event.fields["phase"]:
            case "start":
                node |= {"phase": "running", "runs": node["runs"] + 1}
                node.pop("outcome", None)
            case "skip":
                node |= {"phase": "skipped", "outcome": thaw(event.fields["outcome"])}
            case _:
                node |= {"phase": "done", "outcome": thaw(event.fields["outcome"])}


def outermost(shape: Shape) -> tuple[Path | None, GraphShape | None]:
    """The outermost graph and where it stands, also when loops are around it."""
    path: Path = ()
    while not isinstance(shape, LeafShape):
        path = (*path, shape.name)
        if isinstance(shape, GraphShape):
            return path, shape
        shape = shape.body
    return None, None


def _name(shape: Shape) -> str:
    return shape.label if isinstance(shape, LeafShape) else shape.name


def _declared(node: NodeShape) -> dict[str, Any]:
    told: dict[str, Any] = {"phase": "declared", "needs": list(node.needs), "runs": 0}
    for name in ("desc", "gate"):
        if (value := getattr(node, name)) is not None:
            told[name] = value
    if node.optional:
        told["optional"] = True
    return told
