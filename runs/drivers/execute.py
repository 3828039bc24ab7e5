"""Do one start of one leaf: the only place where an author's code runs and may fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from runs.drivers import clean
from runs.drivers.context import Context, GraphPosition
from runs.kernel.asking import asked, put, routing_of
from runs.kernel.conditions import Condition, ConditionResult
from runs.kernel.errors import LoopError, as_loop_error
from runs.kernel.events import Event, EventKind, Path, joined
from runs.kernel.graph import GraphShape, LeafShape, NodeShape, Shape
from runs.kernel.jsonable import JSONValue, JsonValueError
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.places import Place
from runs.kernel.sendbacks import needs_of
from runs.kernel.state import RunState
from runs.shapes.job import Asking, Leaf, outcome_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a start came to: an outcome, or a question to wait on."""

    outcome: Outcome | None = None
    asking: Asking | None = None
    error: LoopError | None = None
    asked: Mapping[str, JSONValue] | None = None


def run_leaf(leaf: Leaf, ctx: Context) -> Ended:
    """Run the body; whatever it raises becomes a recorded outcome (runs.md R34, R227)."""
    try:
        value = leaf(ctx)
        if isinstance(value, Asking):
            return Ended(asking=clean.question(ctx, value))
        outcome = clean.outcome(ctx, _frozen(leaf, outcome_of(leaf.shape.label, value)))
    except (Exception, SystemExit, asyncio.CancelledError) as raised:  # noqa: BLE001 - see R34
        return _raised(leaf, ctx, raised)
    return Ended(outcome=outcome, asked=_asked(ctx, outcome), error=_returned_error(outcome))


def _frozen(leaf: Leaf, outcome: Outcome) -> Outcome:
    try:
        return outcome.frozen()
    except JsonValueError as error:
        text = f"the outcome of {leaf.shape.label!r} is no JSON: {error}"
        raise LoopError("VALIDATION", text, phase="body") from error


def _raised(leaf: Leaf, ctx: Context, raised: BaseException) -> Ended:
    logger.info("step raised run=%s step=%s error=%s", ctx.run_id, "/".join(ctx.path), type(raised))
    code = "BODY" if leaf.declared or ctx.path else "UNKNOWN"
    if ctx.signal.is_set():
        code = "ABORTED"
    if isinstance(raised, SystemExit):
        raised = LoopError(code, f"the step called exit({raised.code!r}).", phase="body")
    error = as_loop_error(raised, fallback=code, phase="body")
    clean.error(ctx, error)
    outcome = failing(error)
    if error.code == "ABORTED":
        outcome = outcome.evolve(status="aborted")
    return Ended(outcome=outcome, error=error, asked=_asked(ctx, outcome))


def _returned_error(outcome: Outcome) -> LoopError | None:
    if outcome.error is None or outcome.error.get("code") != "VALIDATION":
        return None
    return LoopError("VALIDATION", str(outcome.error.get("message", "")))


def _asked(ctx: Context, outcome: Outcome) -> Mapping[str, JSONValue] | None:
    """The question of this job: one it named, or the request a paused outcome carries."""
    if ctx.notes.asked is not None:
        return asked(ctx.notes.asked)
    data = outcome.data
    if outcome.status != "paused" or not isinstance(data, Mapping) or "requestId" not in data:
        return None
    # Only a question that was really put can be answered.
    if ctx.callbacks.history(str(data["requestId"])):
        return {
            "requestId": data["requestId"],
            "gateId": data.get("gateId"),
            "question": data.get("decisionText"),
        }
    return None


def bind(state: RunState, place: Place, question: Asking, now: int) -> list[Event]:
    """The events that put a body's question and bind it to its step."""
    routing = routing_of(place, state, question.request) | dict(question.routing)
    return put(state, place, question.request, routing, now)


def run_check(when: Condition, ctx: Context) -> ConditionResult | LoopError:
    """Evaluate a `when` that is the author's code (runs.md R117, R118)."""
    try:
        return clean.result(ctx, when(ctx, ctx.last_outcome))
    except (Exception, SystemExit, asyncio.CancelledError) as raised:  # noqa: BLE001 - see R118
        return clean.error(ctx, as_loop_error(raised, fallback="BODY", phase="body"))


def end_fields(leaf: LeafShape, ended: Ended, duration_ms: int) -> dict[str, Any]:
    """The fields of `job:end` for an outcome."""
    assert ended.outcome is not None
    fields: dict[str, Any] = {
        "label": leaf.label,
        "outcome": ended.outcome.to_json(),
        "durationMs": duration_ms,
    }
    if ended.asked is not None:
        fields["asked"] = dict(ended.asked)
    return fields


def error_fields(error: LoopError) -> dict[str, JSONValue]:
    """The fields of an `error` event."""
    return {"message": error.message, "code": error.code}


def check_failed_events(
    path: Path, state: RunState, error: LoopError
) -> list[tuple[str, Path, dict[str, Any]]]:
    """A `when` that raised is its node's failure (runs.md R118)."""
    attempt = state.scopes[path[:-1]].nodes[path[-1]].attempt
    done = {
        "node": path[-1],
        "phase": "done",
        "attempt": attempt,
        "outcome": failing(error).to_json(),
    }
    return [
        (EventKind.ERROR, path, error_fields(error)),
        (EventKind.NODE, path[:-1], done),
    ]


def idempotency_key(run_id: str, state: RunState, path: Path) -> str:
    """The same for every try of one logical attempt, another for every other attempt."""
    scope = state.scopes.get(path[:-1]) if path else None
    if scope is None:
        return f"{run_id}/{joined(path)}/1.1"
    attempt = scope.nodes[path[-1]].attempt
    return f"{run_id}/{joined(path)}/{scope.invocation}.{attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """What the state says to a job at its path."""

    needs: Mapping[str, Outcome] | None = None
    graph: GraphPosition | None = None
    last_review: Outcome | None = None
    timeout_ms: int | None = None
    timeout_grace_ms: int | None = None


def position_of(shape: Shape, state: RunState, path: Path) -> Position:
    """Needs, review and place for the job whose slot stands at `path`."""
    found = Position()
    for end in range(2, len(path) + 1, 2):
        graph, node = _graph_and_node(shape, path[:end])
        found = _inside(found, graph, node, state, path[:end])
        shape = node.job
    return found


def _graph_and_node(shape: Shape, path: Path) -> tuple[GraphShape, NodeShape]:
    if isinstance(shape, GraphShape) and path[-2] == shape.name and path[-1] in shape.by_name:
        return shape, shape.by_name[path[-1]]
    raise LoopError("CONFIG", f"the definition has no step at {'/'.join(path)}.")


def _inside(
    outer: Position, graph: GraphShape, node: NodeShape, state: RunState, path: Path
) -> Position:
    """The position of a node in the graph at `outer`; time limits and reviews reach inwards."""
    scope = state.scopes[path[:-1]]
    here = scope.nodes[node.name]
    # A review of a graph is answered by the first run of each of its steps (runs.md R8).
    review = outer.last_review if here.attempt == 1 else None
    grace = node.timeout_grace_ms
    return Position(
        needs=MappingProxyType(needs_of(scope, node)),
        graph=GraphPosition(
            dag=graph.name,
            node=node.name,
            attempt=here.attempt,
            path=path,
            needs=node.needs,
            dependents=graph.followers[node.name],
            desc=node.desc,
            gate=node.gate,
        ),
        last_review=here.last_review or review,
        timeout_ms=outer.timeout_ms if node.timeout_ms is None else node.timeout_ms,
        timeout_grace_ms=outer.timeout_grace_ms if grace is None else grace,
    )
