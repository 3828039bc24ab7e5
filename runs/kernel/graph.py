"""A compiled workflow as plain data: what may run, after what, and how often.

A web process decides with this alone; the author's code behind a leaf is loaded by workers only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, Final, Literal, cast

from runs.kernel.jsonable import JSONValue, digest_hex
from runs.kernel.leaf import AskShape, LeafShape
from runs.kernel.loopshape import LoopShape, RetryRule, StallRule
from runs.kernel.panels import PanelRule
from runs.kernel.retries import RetryPolicy

__all__ = [
    "DEFAULT_CONCURRENCY",
    "AskShape",
    "GraphShape",
    "LeafShape",
    "Limits",
    "LoopShape",
    "NodeShape",
    "PausePolicy",
    "RetryRule",
    "Shape",
    "StallRule",
    "graph_identity",
    "leaf_count",
    "shape_from_json",
    "shape_identity",
]

DEFAULT_CONCURRENCY: Final = 4
PausePolicy = Literal["continue", "stop"]
OnConflict = Literal["fail", "synthesize"]
Limits = int | Mapping[str, int] | None


@dataclass(frozen=True, kw_only=True)
class NodeShape:
    """A named member of a graph (runs.md section 7). `when` is condition data, see conditions."""

    name: str
    job: Shape
    needs: tuple[str, ...] = ()
    when: Mapping[str, JSONValue] | None = None
    optional: bool = False
    isolate: bool = False
    accepts_kickback_to: tuple[str, ...] = ()
    retry_safe: bool = False
    timeout_ms: int | None = None
    timeout_grace_ms: int | None = None
    desc: str | None = None
    gate: str | None = None
    file: str | None = None
    retry: RetryPolicy | None = None

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"name": self.name, "job": self.job.to_json()}
        if self.needs:
            wire["needs"] = list(self.needs)
        if self.when is not None:
            wire["when"] = dict(self.when)
        if self.accepts_kickback_to:
            wire["acceptsKickbackTo"] = list(self.accepts_kickback_to)
        for key in ("optional", "isolate", "retry_safe"):
            if getattr(self, key):
                wire[_CAMEL[key]] = True
        if self.retry is not None:
            wire["retry"] = self.retry.to_json()
        for key in ("timeout_ms", "timeout_grace_ms", "desc", "gate", "file"):
            if (value := getattr(self, key)) is not None:
                wire[_CAMEL[key]] = value
        return wire

    @classmethod
    def from_json(cls, wire: Mapping[str, Any]) -> NodeShape:
        retry = wire.get("retry")
        return cls(
            retry=None if retry is None else RetryPolicy.from_json(retry),
            name=wire["name"],
            job=shape_from_json(wire["job"]),
            needs=tuple(wire.get("needs", ())),
            when=wire.get("when"),
            accepts_kickback_to=tuple(wire.get("acceptsKickbackTo", ())),
            **{key: wire[name] for key, name in _CAMEL.items() if name in wire},
        )

    @property
    def can_repeat(self) -> bool:
        """True when an interrupted try may simply be made again (design I5)."""
        return self.retry_safe or (isinstance(self.job, LeafShape) and self.job.retry_safe)


_CAMEL: Final = {
    "optional": "optional",
    "isolate": "isolate",
    "retry_safe": "retrySafe",
    "timeout_ms": "timeoutMs",
    "timeout_grace_ms": "timeoutGraceMs",
    "desc": "desc",
    "gate": "gate",
    "file": "file",
}


@dataclass(frozen=True, kw_only=True)
class GraphShape:
    """A dependency graph of named nodes; nests to any depth."""

    name: str
    nodes: tuple[NodeShape, ...]
    concurrency: int | None = None
    stop_on_error: bool = True
    max_kickbacks: Limits = None
    pause_policy: PausePolicy = "continue"
    isolation: str | None = None
    kind: str = "dag"
    brief: str | None = None
    use_case: str | None = None
    on_conflict: OnConflict = "fail"
    panel: PanelRule | None = None
    declared: str = ""
    """The digest of what a workflow says of itself: its brief, stages and seats (W193)."""

    @cached_property
    def by_name(self) -> dict[str, NodeShape]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def identity(self) -> str:
        """What `graph_identity` says: every run of the graph opens it with that."""
        return _graph_identity(self)

    @cached_property
    def unhanded(self) -> tuple[str, ...]:
        """The nodes that no worker has in hand as a whole: graphs, loops, and the kernel's own."""
        return tuple(
            node.name
            for node in self.nodes
            if not (isinstance(node.job, LeafShape) and node.job.by_worker)
        )

    @cached_property
    def slots(self) -> int:
        """How many nodes may run at once (runs.md R116)."""
        given = self.concurrency or 0
        return given if given > 0 else DEFAULT_CONCURRENCY

    @cached_property
    def topological(self) -> tuple[NodeShape, ...]:
        """Every node after all it needs; declaration order among equals."""
        place = {node.name: index for index, node in enumerate(self.nodes)}
        unmet = [len(set(node.needs)) for node in self.nodes]
        free = [index for index, count in enumerate(unmet) if count == 0]
        placed: list[NodeShape] = []
        while free:
            node = self.nodes[heappop(free)]
            placed.append(node)
            for name in self.followers[node.name]:
                unmet[place[name]] -= 1
                if unmet[place[name]] == 0:
                    heappush(free, place[name])
        if len(placed) < len(self.nodes):
            raise ValueError(f"graph {self.name!r} has a dependency cycle.")
        return tuple(placed)

    @cached_property
    def rank(self) -> dict[str, int]:
        """Where each node stands in topological order."""
        return {node.name: index for index, node in enumerate(self.topological)}

    @cached_property
    def followers(self) -> dict[str, tuple[str, ...]]:
        """For each node, those that name it in their needs."""
        found: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for node in self.nodes:
            for need in dict.fromkeys(node.needs):
                found[need].append(node.name)
        return {name: tuple(listed) for name, listed in found.items()}

    def dependents(self, name: str) -> tuple[str, ...]:
        """Everything that depends on the node, directly or through others, as declared."""
        found: set[str] = set()
        edge = [name]
        while edge:
            news = set(self.followers[edge.pop()]) - found
            found |= news
            edge += news
        return tuple(node.name for node in self.nodes if node.name in found)

    def limit_for(self, target: str) -> int:
        """Send-backs allowed to `target` (runs.md R132, R133)."""
        match self.max_kickbacks:
            case None:
                return 0
            case int(number):
                return number
            case limits:
                return limits.get(target, 0)

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {
            "kind": self.kind,
            "name": self.name,
            "nodes": [node.to_json() for node in self.nodes],
        }
        if self.concurrency is not None:
            wire["concurrency"] = self.concurrency
        if not self.stop_on_error:
            wire["stopOnError"] = False
        if self.max_kickbacks is not None:
            limits = self.max_kickbacks
            wire["maxKickbacks"] = limits if isinstance(limits, int) else dict(limits)
        if self.pause_policy != "continue":
            wire["pausePolicy"] = self.pause_policy
        if self.on_conflict != "fail":
            wire["onConflict"] = self.on_conflict
        for key, name in (("isolation", "isolation"), ("brief", "brief"), ("use_case", "useCase")):
            if (value := getattr(self, key)) is not None:
                wire[name] = value
        if self.panel is not None:
            wire["panel"] = self.panel.to_json()
        if self.declared:
            wire["declared"] = self.declared
        return wire


Shape = LeafShape | GraphShape | LoopShape


def shape_from_json(wire: Mapping[str, Any]) -> Shape:
    """Read back what `to_json` wrote."""
    if "nodes" in wire:
        panel = wire.get("panel")
        return GraphShape(
            panel=None if panel is None else PanelRule.from_json(panel),
            kind=wire["kind"],
            name=wire["name"],
            nodes=tuple(NodeShape.from_json(node) for node in wire["nodes"]),
            concurrency=wire.get("concurrency"),
            stop_on_error=wire.get("stopOnError", True),
            max_kickbacks=wire.get("maxKickbacks"),
            pause_policy=wire.get("pausePolicy", "continue"),
            isolation=wire.get("isolation"),
            brief=wire.get("brief"),
            use_case=wire.get("useCase"),
            on_conflict=wire.get("onConflict", "fail"),
            declared=wire.get("declared", ""),
        )
    if "body" in wire:
        review = wire.get("review")
        return LoopShape.read(
            wire,
            body=shape_from_json(wire["body"]),
            review=None if review is None else shape_from_json(review),
        )
    return LeafShape.from_json(wire)


def graph_identity(graph: GraphShape) -> str:
    """What must stay the same for recorded steps to count (runs.md R231, R232)."""
    return graph.identity


def _graph_identity(graph: GraphShape) -> str:
    limits = graph.max_kickbacks
    panel = {} if graph.panel is None else {"panel": graph.panel.to_json()}
    declared = {"declared": graph.declared} if graph.declared else {}
    return digest_hex(
        {
            **panel,
            **declared,
            "name": graph.name,
            "concurrency": graph.concurrency,
            "isolation": graph.isolation,
            "maxKickbacks": dict(limits) if isinstance(limits, Mapping) else limits,
            "nodes": [
                {
                    "name": node.name,
                    "needs": list(node.needs),
                    "optional": node.optional,
                    "isolate": node.isolate,
                    "when": None if node.when is None else dict(node.when),
                }
                for node in sorted(graph.nodes, key=lambda node: node.name)
            ],
        }
    )


def shape_identity(shape: Shape) -> str:
    """The identity of a whole definition: its graphs and loops at every depth, without bodies."""
    match shape:
        case GraphShape():
            inner = {
                node.name: shape_identity(node.job)
                for node in shape.nodes
                if not isinstance(node.job, LeafShape)
            }
            return digest_hex({"graph": graph_identity(shape), "inner": cast("Any", inner)})
        case LoopShape():
            parts = {"body": shape_identity(shape.body)}
            if shape.review is not None:
                parts["review"] = shape_identity(shape.review)
            return digest_hex({"loop": shape.rules(), "inner": cast("Any", parts)})
        case LeafShape():
            return digest_hex({"leaf": shape.kind, "label": shape.label})


def leaf_count(shape: Shape) -> int:
    """How many steps a person counts: the leaves at every depth, a loop's once."""
    match shape:
        case GraphShape():
            return sum(leaf_count(node.job) for node in shape.nodes)
        case LoopShape():
            return leaf_count(shape.body) + (leaf_count(shape.review) if shape.review else 0)
        case LeafShape():
            return 1
