"""What a graph came to, from what its nodes came to (runs.md R121-R125)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from runs.kernel.graph import GraphShape, LoopShape, NodeShape
from runs.kernel.outcomes import Outcome
from runs.kernel.panels import panel_outcome
from runs.kernel.scopes import NodeState, Scope


def graph_outcome(graph: GraphShape, nodes: Mapping[str, NodeState], *, cancelled: bool) -> Outcome:
    """The first that applies: cancelled, paused, a required node not passed, pass (R122)."""
    ended = {name: state.outcome for name, state in nodes.items() if state.outcome is not None}
    data = {name: outcome.to_json() for name, outcome in ended.items()}
    late = any(outcome.late for outcome in ended.values())
    if cancelled:
        return Outcome(status="aborted", summary="cancelled", data=data, late=late)
    for node in graph.nodes:
        outcome = ended.get(node.name)
        if outcome is not None and outcome.status == "paused":
            return Outcome(status="paused", summary=outcome.summary, data=data, late=late)
    if graph.panel is not None:
        reviews = [(node.name, ended[node.name]) for node in graph.nodes if node.name in ended]
        return replace(panel_outcome(graph.panel, reviews), late=late)
    failed = [
        (node.name, ended[node.name])
        for node in graph.nodes
        if not node.optional and node.name in ended and not ended[node.name].passed
    ]
    if not failed:
        return Outcome(status="pass", summary=f"{graph.name} passed", data=data, late=late)
    error = next((end.error for _, end in failed if end.error and not end.retryable), None)
    summary = _summary(graph, failed)
    return Outcome(status="fail", summary=summary, data=data, error=error, late=late)


def _summary(graph: GraphShape, failed: list[tuple[str, Outcome]]) -> str:
    count = len(failed)
    text = f"{count} required step{'s' if count > 1 else ''} did not complete"
    spent = [
        f"{name} {'stalled' if end.stall else 'ran out of rounds'}: {end.summary or 'no reason'}"
        for name, end in failed
        if end.status == "exhausted" or _is_spent(graph.by_name[name], end)
    ]
    return "; ".join([text, *spent])


def _is_spent(node: NodeShape, end: Outcome) -> bool:
    """Whether a stage failed because its reviews left it no further round (workflows.md W69)."""
    is_stage = isinstance(node.job, LoopShape) and node.job.keeps_rounds
    return is_stage and end.revision is not None and end.error is None


def never_ran(graph: GraphShape, scope: Scope, node: NodeShape, *, cancelled: bool) -> str:
    """Why a node ends without a start, in words for its outcome (runs.md R114, R119)."""
    if cancelled:
        return "cancelled before it started"
    for name in node.needs:
        outcome = scope.nodes[name].settled
        if graph.by_name[name].optional or (outcome is not None and outcome.passed):
            continue
        if outcome is not None:
            return f"not run: {name} ended {outcome.status}"
        return f"not run: {name} did not run"
    return "not run: an earlier step failed"


def paused_graph(graph: GraphShape, scope: Scope) -> Outcome:
    """The outcome of a graph that waits: its first paused node's (R122)."""
    ended = {name: node.outcome for name, node in scope.nodes.items() if node.outcome is not None}
    paused = (ended[node.name] for node in graph.nodes if node.name in ended)
    first = next((outcome for outcome in paused if outcome.status == "paused"), None)
    summary = "waiting" if first is None else first.summary
    data = {name: outcome.to_json() for name, outcome in ended.items()}
    return Outcome(status="paused", summary=summary, data=data)
