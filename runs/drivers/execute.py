"""Do one start of one leaf: the only place where an author's code runs and may fail."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runs.drivers.context import Context, GraphPosition
from runs.kernel.asking import asked, put, routing_of
from runs.kernel.conditions import Condition, ConditionResult
from runs.kernel.errors import LoopError, as_loop_error
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import GraphShape, LeafShape, NodeShape, Shape
from runs.kernel.jsonable import JSONValue, JsonValueError
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.places import Place
from runs.kernel.redact import redact
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
    """Run the body; whatever it raises becomes a recorded outcome (runs.md R34)."""
    try:
        value = leaf(ctx)
        if isinstance(value, Asking):
            return Ended(asking=value)
        outcome = outcome_of(leaf.shape.label, value).frozen()
    except Exception as raised:
        return _raised(leaf, ctx, raised)
    error = _returned_error(outcome)
    return Ended(outcome=outcome, asked=_asked(ctx, outcome), error=error)


def _raised(leaf: Leaf, ctx: Context, raised: Exception) -> Ended:
    logger.info("step raised run=%s step=%s error=%r", ctx.run_id, "/".join(ctx.path), raised)
    code = "VALIDATION" if isinstance(raised, JsonValueError) else "BODY"
    if ctx.signal.is_set() and not isinstance(raised, LoopError):
        code = "ABORTED"
    error = as_loop_error(raised, fallback=code, phase="body")
    error.message = redact(error.message)
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
    if ctx.asked_request is not None:
        return asked(ctx.asked_request)  # type: ignore[return-value]  # str is a JSON value
    data = outcome.data
    if outcome.status == "paused" and isinstance(data, Mapping) and "requestId" in data:
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
        return when(ctx, ctx.last_outcome)
    except Exception as raised:
        return as_loop_error(raised, fallback="BODY", phase="body")


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
    if not path:
        return Position()
    graph, node = _graph_and_node(shape, path)
    scope = state.scopes[path[:-1]]
    here = scope.nodes[path[-1]]
    return Position(
        needs=needs_of(scope, node),
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
        last_review=here.last_review,
        timeout_ms=node.timeout_ms,
        timeout_grace_ms=node.timeout_grace_ms,
    )


def _graph_and_node(shape: Shape, path: Path) -> tuple[GraphShape, NodeShape]:
    while True:
        if not isinstance(shape, GraphShape) or shape.name != path[0]:
            raise LoopError("CONFIG", f"the definition has no step at {'/'.join(path)}.")
        node = shape.by_name[path[1]]
        if len(path) == 2:
            return shape, node
        shape, path = node.job, path[2:]
