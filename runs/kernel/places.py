"""Where a job stands: from a path to the part of the shape and of the state that it names."""

from __future__ import annotations

from dataclasses import dataclass

from runs.kernel.events import Path
from runs.kernel.graph import GraphShape, LeafShape, NodeShape, Shape
from runs.kernel.scopes import Scope
from runs.kernel.slots import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a leaf stands: its path, and its node and graph when it is in one."""

    path: Path
    leaf: LeafShape
    graph: GraphShape | None = None
    node: NodeShape | None = None
    scope: Scope | None = None

    @property
    def can_repeat(self) -> bool:
        return self.leaf.retry_safe or (self.node is not None and self.node.retry_safe)

    @property
    def attempt(self) -> int:
        if self.scope is None or self.node is None:
            return 1
        return self.scope.nodes[self.node.name].attempt


def shape_at(shape: Shape, path: Path) -> Shape | None:
    """The job whose slot stands at `path`; None when the shape has no such place."""
    while path:
        if not isinstance(shape, GraphShape) or path[0] != shape.name or len(path) < 2:
            return None
        node = shape.by_name.get(path[1])
        if node is None:
            return None
        shape, path = node.job, path[2:]
    return shape


def place_at(shape: Shape, state: RunState, path: Path) -> Place:
    """Where the leaf at `path` stands, for the questions it puts."""
    leaf = shape_at(shape, path)
    assert isinstance(leaf, LeafShape)
    if not path:
        return Place(path=path, leaf=leaf)
    graph = shape_at(shape, path[:-2])
    assert isinstance(graph, GraphShape)
    scope = state.scopes[path[:-1]]
    return Place(path=path, leaf=leaf, graph=graph, node=graph.by_name[path[-1]], scope=scope)


def is_worker_leaf(shape: Shape, path: Path) -> bool:
    """Whether a worker does what stands at `path`."""
    found = shape_at(shape, path)
    return isinstance(found, LeafShape) and found.by_worker
