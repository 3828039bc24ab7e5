"""Where a job stands: from a path to the part of the shape and of the state that it names.

A graph adds its own name and the name of a node to the path of what is in it, a loop adds its
own name; the body and the review of a loop stand at the same path, and the loop's state says
which of the two is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from runs.kernel.events import Path
from runs.kernel.graph import GraphShape, LeafShape, LoopShape, NodeShape, Shape
from runs.kernel.loops import LoopState
from runs.kernel.retries import RetryPolicy
from runs.kernel.scopes import Scope
from runs.kernel.slots import JOB, RunState

Loops = Mapping[Path, LoopState]
NO_LOOPS: Final[Loops] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """One step on the way inwards: into a node of a graph, or into the body or review of a loop.

    `path` is where the slot of what is inside stands.
    """

    owner: GraphShape | LoopShape
    path: Path
    node: NodeShape | None = None
    in_review: bool = False

    @property
    def inner(self) -> Shape:
        if self.node is not None:
            return self.node.job
        assert isinstance(self.owner, LoopShape)
        review = self.owner.review
        return review if self.in_review and review is not None else self.owner.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a leaf stands: its path, and its node and graph when it is in one."""

    path: Path
    leaf: LeafShape
    graph: GraphShape | None = None
    node: NodeShape | None = None
    scope: Scope | None = None

    @property
    def works_apart(self) -> bool:
        """Whether its work is in a git worktree of its own until it lands (runs.md R239)."""
        return self.leaf.kind == "isolated" or (self.node is not None and self.node.isolate)

    @property
    def can_repeat(self) -> bool:
        return self.leaf.retry_safe or (self.node is not None and self.node.retry_safe)

    @property
    def retry(self) -> RetryPolicy | None:
        """How often it is tried: as its node says, or as it says itself."""
        given = self.node.retry if self.node is not None else None
        return self.leaf.retry if given is None else given

    @property
    def attempt(self) -> int:
        if self.scope is None or self.node is None:
            return 1
        return self.scope.nodes[self.node.name].attempt


def trail(
    shape: Shape, path: Path, loops: Loops = NO_LOOPS, *, toward: str = ""
) -> list[Descent] | None:
    """The way from the outermost job to what stands at `path`; None when there is no such way.

    `toward` is the name of what is looked for inside it.
    """
    named = (*path, toward) if toward else path
    found: list[Descent] = []
    at = 0
    while at < len(path):
        if isinstance(shape, LeafShape) or path[at] != shape.name:
            return None
        if isinstance(shape, GraphShape):
            node = shape.by_name.get(path[at + 1]) if at + 1 < len(path) else None
            if node is None:
                return None
            at += 2
            step = Descent(owner=shape, path=path[:at], node=node)
        else:
            at += 1
            in_review = _in_review(shape, loops.get(path[:at]), named[at : at + 1])
            step = Descent(owner=shape, path=path[:at], in_review=in_review)
        found.append(step)
        shape = step.inner
    return found


def _in_review(loop: LoopShape, state: LoopState | None, after: Path) -> bool:
    """Whether the review is meant; a name that only one of the two has tells them apart."""
    if loop.review is None:
        return False
    if after:
        in_body, in_review = (_begins(job, after[0]) for job in (loop.body, loop.review))
        if in_body != in_review:
            return in_review
    return state is not None and state.in_review


def _begins(job: Shape, name: str) -> bool:
    return not isinstance(job, LeafShape) and job.name == name


def shape_at(shape: Shape, path: Path, loops: Loops = NO_LOOPS) -> Shape | None:
    """The job whose slot stands at `path`; None when the shape has no such place."""
    way = trail(shape, path, loops)
    if way is None:
        return None
    return way[-1].inner if way else shape


def graph_at(shape: Shape, path: Path, loops: Loops = NO_LOOPS) -> GraphShape | None:
    """The graph whose scope stands at `path` (which ends with the graph's own name)."""
    way = trail(shape, path[:-1], loops, toward=path[-1])
    found = way[-1].inner if way else shape
    is_it = way is not None and isinstance(found, GraphShape) and found.name == path[-1]
    return found if is_it and isinstance(found, GraphShape) else None


def place_at(shape: Shape, state: RunState, path: Path) -> Place:
    """Where the leaf at `path` stands, for the questions it puts."""
    way = trail(shape, path, state.loops)
    assert way is not None
    leaf = way[-1].inner if way else shape
    assert isinstance(leaf, LeafShape)
    if not way:
        return Place(path=path, leaf=leaf)
    owner, node = way[-1].owner, way[-1].node
    if isinstance(owner, LoopShape):
        return Place(path=path, leaf=leaf)
    return Place(path=path, leaf=leaf, graph=owner, node=node, scope=state.scopes[path[:-1]])


def rounds_at(state: RunState, path: Path) -> list[int]:
    """The rounds of the loops around `path`, outermost first."""
    prefixes = (path[:end] for end in range(1, len(path) + 1))
    return [state.loops[at].iteration for at in prefixes if at in state.loops]


def is_handed_out(shape: Shape, task: str, path: Path, loops: Loops) -> bool:
    """Whether a worker does this task at `path`: every check, and a leaf that needs its code."""
    if task != JOB:
        return True
    found = shape_at(shape, path, loops)
    return isinstance(found, LeafShape) and found.by_worker
