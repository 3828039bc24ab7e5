"""One invocation of a graph: where each of its nodes stands, and what follows from that.

Beside the nodes a scope keeps short lists of those a decision has to look at. They are derived
from the nodes alone, so that a decision on a graph of thousands costs as much as on one of ten.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from runs.kernel.evolving import evolve
from runs.kernel.outcomes import Outcome

NodeStatus = Literal["idle", "checking", "active", "paused", "done"]
Places = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """One node of one graph invocation; `attempt` counts from 1 in it.

    An active or checking node takes one of its graph's slots, a paused one takes none.
    """

    status: NodeStatus = "idle"
    attempt: int = 1
    outcome: Outcome | None = None
    started_at: int = 0
    met: bool | None = None
    reason: str = ""
    last_review: Outcome | None = None

    @property
    def settled(self) -> Outcome | None:
        """The outcome of a node that has ended for good in this attempt."""
        return self.outcome if self.status == "done" else None

    @property
    def is_open(self) -> bool:
        """Whether the node has begun and not ended."""
        return self.status in ("checking", "active", "paused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The nodes of a graph and what each needs, as its start recorded them."""

    names: tuple[str, ...]
    place: Mapping[str, int]
    needs: Mapping[str, tuple[str, ...]]
    followers: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One invocation of a graph.

    `accepted` counts the send-backs to each node, `reworked` the rounds of a stage that its own
    reviews asked for. `watched` are the open nodes but for those whose job is due or running:
    what a worker has in hand changes by a word of the worker alone. It depends on the slots, so
    None stands for "not known yet" until the scope is part of a state, see slots.put_scope.
    """

    invocation: int
    started_at: int
    plan: Plan
    nodes: Mapping[str, NodeState]
    accepted: Mapping[str, int] = field(default_factory=dict)
    reworked: Mapping[str, int] = field(default_factory=dict)
    refused: frozenset[tuple[str, int]] = frozenset()
    closed: bool = False
    ended: Outcome | None = None
    open: Places = ()
    ready: Places = ()
    failed: Places = ()
    asking_back: Places = ()
    watched: Places | None = None

    @property
    def accepted_count(self) -> int:
        return sum(self.accepted.values())

    def names(self, places: Places) -> Iterator[str]:
        """The names at these places, in declaration order."""
        return map(self.plan.names.__getitem__, places)


def opened(
    names: Sequence[str], needs: Mapping[str, Sequence[str]], *, invocation: int, at: int
) -> Scope:
    """A scope whose nodes have all yet to run."""
    followers: dict[str, list[str]] = {}
    for name in names:
        for need in needs.get(name, ()):
            followers.setdefault(need, []).append(name)
    plan = Plan(
        names=tuple(names),
        place={name: place for place, name in enumerate(names)},
        needs={name: tuple(listed) for name, listed in needs.items()},
        followers={name: tuple(listed) for name, listed in followers.items()},
    )
    nodes = {name: NodeState() for name in names}
    return with_nodes(Scope(invocation=invocation, started_at=at, plan=plan, nodes=nodes), nodes)


def with_node(scope: Scope, name: str, *, at_work: bool, **changes: Any) -> Scope:
    """The scope with one node changed; its job is `at_work` when it is due or running."""
    before = scope.nodes[name]
    node = evolve(before, **changes)
    nodes = {**scope.nodes, name: node}
    place = scope.plan.place[name]
    ready = _marked(scope.ready, place, _is_ready(scope.plan, nodes, name))
    if (before.status == "done") != (node.status == "done"):
        for follower in scope.plan.followers.get(name, ()):
            is_ready = _is_ready(scope.plan, nodes, follower)
            ready = _marked(ready, scope.plan.place[follower], is_ready)
    return evolve(
        scope,
        nodes=nodes,
        ready=ready,
        open=_marked(scope.open, place, node.is_open),
        failed=_marked(scope.failed, place, _has_failed(node)),
        asking_back=_marked(scope.asking_back, place, _asks_back(node)),
        watched=_marked(scope.watched or (), place, _is_watched(node, at_work=at_work)),
    )


def worked_on(scope: Scope, name: str, *, at_work: bool) -> Scope:
    """The scope after the job of a node has begun, stopped or ended."""
    is_watched = _is_watched(scope.nodes[name], at_work=at_work)
    watched = _marked(scope.watched or (), scope.plan.place[name], is_watched)
    return scope if watched is scope.watched else evolve(scope, watched=watched)


def watching(scope: Scope, at_work: Callable[[str], bool]) -> Scope:
    """The scope with `watched` found anew, by what is said of each open node's job."""
    names = scope.names(scope.open)
    found = (name for name in names if _is_watched(scope.nodes[name], at_work=at_work(name)))
    return evolve(scope, watched=_places(scope.plan, found))


def with_nodes(scope: Scope, nodes: Mapping[str, NodeState], **changes: Any) -> Scope:
    """The scope with its nodes replaced, and whatever else changes with them."""
    plan = scope.plan
    return evolve(
        scope,
        nodes=nodes,
        ready=_places(plan, (name for name in plan.names if _is_ready(plan, nodes, name))),
        open=_places(plan, (name for name in plan.names if nodes[name].is_open)),
        failed=_places(plan, (name for name in plan.names if _has_failed(nodes[name]))),
        asking_back=_places(plan, (name for name in plan.names if _asks_back(nodes[name]))),
        watched=None,
        **changes,
    )


def sent_back(scope: Scope, target: str, rerun: Iterable[str], review: Outcome) -> Scope:
    """The scope after an accepted send-back: the target and all that depends on it run again."""
    nodes = dict(scope.nodes)
    for name in rerun:
        node = nodes[name]
        # A node that has yet to run has no attempt behind it: its first one is still to come.
        attempt = node.attempt if node.status == "idle" else node.attempt + 1
        nodes[name] = NodeState(attempt=attempt, last_review=node.last_review)
    nodes[target] = evolve(nodes[target], last_review=review)
    accepted = {**scope.accepted, target: scope.accepted.get(target, 0) + 1}
    return with_nodes(scope, nodes, accepted=accepted)


def _places(plan: Plan, names: Iterable[str]) -> Places:
    return tuple(plan.place[name] for name in names)


def _marked(places: Places, place: int, inside: bool) -> Places:
    """The ordered places with one of them in or out."""
    at = bisect_left(places, place)
    is_inside = at < len(places) and places[at] == place
    if inside == is_inside:
        return places
    return (*places[:at], place, *places[at:]) if inside else places[:at] + places[at + 1 :]


def _is_ready(plan: Plan, nodes: Mapping[str, NodeState], name: str) -> bool:
    """Idle, and everything it needs has ended one way or another."""
    if nodes[name].status != "idle":
        return False
    return all(nodes[need].status == "done" for need in plan.needs.get(name, ()))


def _is_watched(node: NodeState, *, at_work: bool) -> bool:
    return node.is_open and not (at_work and node.status == "active")


def _has_failed(node: NodeState) -> bool:
    return node.settled is not None and not node.settled.passed


def _asks_back(node: NodeState) -> bool:
    outcome = node.settled
    return outcome is not None and outcome.revision is not None and bool(outcome.revision.target)
