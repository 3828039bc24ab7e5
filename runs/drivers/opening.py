"""What a record holds for a session that takes it up: what goes on, and what starts over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runs.drivers.jsonl import Record
from runs.kernel.events import EventKind, Path
from runs.kernel.graph import (
    GraphShape,
    LeafShape,
    LoopShape,
    Shape,
    graph_identity,
    shape_identity,
)
from runs.kernel.jsonable import json_equal
from runs.kernel.scopes import Scope
from runs.kernel.slots import RunState, Slot

Wire = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GoesOn:
    """A graph that goes on where it was."""

    path: Path
    graph: GraphShape
    scope: Scope


@dataclass(frozen=True, slots=True)
class StartsOver:
    """A graph or loop that is another one now, or elsewhere; `slot` is the place it is in.

    With `body` it is the body or review of a loop that runs from its first round anyway: then
    only what the graph had finished must not be taken over.
    """

    slot: Path
    body: GraphShape | None = None

    def holds(self, path: Path) -> bool:
        """Whether what stands at `path` is gone with it."""
        return len(path) > len(self.slot) and path[: len(self.slot)] == self.slot


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What is known when a session takes up a record."""

    shape: Shape
    state: RunState
    past: Record
    workspace: str
    params: Mapping[str, Any]

    @cached_property
    def anchors(self) -> dict[Path, Wire]:
        """The last anchor each graph recorded."""
        return {
            event.path: event.fields
            for event in self.past.events
            if event.kind == EventKind.GRAPH_ANCHOR
        }

    @cached_property
    def found(self) -> list[GoesOn | StartsOver]:
        """Every graph and loop that had begun, outermost first (R235-R237)."""
        return list(self._walk(self.shape, ()))

    @property
    def stale(self) -> list[StartsOver]:
        """Those that start over."""
        return [one for one in self.found if isinstance(one, StartsOver)]

    def _walk(self, shape: Shape, at: Path) -> Iterator[GoesOn | StartsOver]:
        if isinstance(shape, LeafShape):
            return
        path = (*at, shape.name)
        begun = self.state.scopes if isinstance(shape, GraphShape) else self.state.loops
        inner = begun.get(path)
        if inner is None or inner.invocation != self.state.slots.get(at, Slot()).number:
            if any(other[:-1] == at for other in (*self.state.scopes, *self.state.loops)):
                yield StartsOver(at)
        elif isinstance(shape, GraphShape):
            yield from self._graph(shape, at)
        else:
            yield from self._loop(shape, at)

    def _graph(self, graph: GraphShape, at: Path) -> Iterator[GoesOn | StartsOver]:
        path = (*at, graph.name)
        if not self._is_same(graph, path):
            yield StartsOver(at)
            return
        scope = self.state.scopes[path]
        yield GoesOn(path, graph, scope)
        for node in graph.nodes:
            settled = scope.nodes[node.name].settled
            if settled is None or not settled.passed:
                yield from self._walk(node.job, (*path, node.name))

    def _loop(self, loop: LoopShape, at: Path) -> Iterator[GoesOn | StartsOver]:
        path = (*at, loop.name)
        state = self.state.loops[path]
        if not state.anew:
            # The rounds of a stage are part of their graph, which is the same.
            if state.keeps or self._is_the_same_run():
                inside = loop.review if state.in_review and loop.review else loop.body
                yield from self._walk(inside, path)
            else:
                yield StartsOver(at)
            return
        for inner in (loop.body, loop.review):
            if not isinstance(inner, GraphShape) or (*path, inner.name) not in self.state.scopes:
                continue
            if self._is_same(inner, (*path, inner.name)):
                yield GoesOn((*path, inner.name), inner, self.state.scopes[*path, inner.name])
            else:
                yield StartsOver(path, inner)

    def _is_same(self, graph: GraphShape, path: Path) -> bool:
        anchor = self.anchors.get(path, {})
        same_place = anchor.get("workspace") == self.workspace
        return same_place and anchor.get("identity") == graph_identity(graph)

    def _is_the_same_run(self) -> bool:
        """Whether a loop may go on in the round it reached (R250)."""
        last = list(starts(self.past))[-1]
        same = last.get("shape") == shape_identity(self.shape)
        same_place = last.get("workspace") == self.workspace
        return same and same_place and json_equal(last.get("params", {}), self.params)


def starts(past: Record) -> Iterator[Wire]:
    """The fields of every `run:start` of the record."""
    return (event.fields for event in past.events if event.kind == EventKind.RUN_START)
