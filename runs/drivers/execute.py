"""Do one start of one leaf: the only place where an author's code runs and may fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from types import MappingProxyType
from typing import Any

from runs.drivers import actions, clean, isolation
from runs.drivers.context import Context, GraphPosition
from runs.drivers.plain import plain
from runs.kernel.actions import ACTION
from runs.kernel.asking import ask_approvals, ask_questions, asked, put, routing_of
from runs.kernel.conditions import ConditionResult
from runs.kernel.errors import LoopError, as_loop_error
from runs.kernel.events import Event, EventKind, Path, joined
from runs.kernel.evolving import evolve
from runs.kernel.graph import GraphShape, LeafShape, LoopShape, NodeShape, Shape
from runs.kernel.jsonable import JSONValue, JsonValueError
from runs.kernel.loop_events import COMPLETE
from runs.kernel.loops import LoopState
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.places import Place, trail
from runs.kernel.questions import PURPOSE as QUESTION
from runs.kernel.sendbacks import needs_of
from runs.kernel.slots import JOB, WHEN
from runs.kernel.state import RunState
from runs.kernel.watching import watches
from runs.shapes.job import Asking, Leaf, outcome_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a start came to: an outcome, or a question to wait on."""

    outcome: Outcome | None = None
    asking: Asking | None = None
    error: LoopError | None = None
    asked: Mapping[str, JSONValue] | None = None
    raised: bool = False
    """A hand-written job raised; a step that raises has returned a failure (runs.md R162)."""


def run_leaf(leaf: Leaf, ctx: Context) -> Ended:
    """Do the step, in a worktree of its own where its node says so (runs.md R34, R128, R227)."""
    ctx.remember_entry()
    graph = ctx.graph
    if graph is None or not graph.isolate:
        return _attempt(leaf, ctx)
    name = f"{graph.dag}-{graph.node}"
    return _isolated(leaf, ctx, name, on_conflict=graph.on_conflict)


def run_isolated(leaf: Leaf, ctx: Context, name: str, **options: Any) -> Outcome | Asking:
    """A step inside another, in a worktree of its own; its errors are recorded at its path."""
    ended = _isolated(leaf, ctx, name, **options)
    if ended.error is not None:
        ctx.emit(EventKind.ERROR, **error_fields(ended.error))
    if ended.asking is not None:
        return ended.asking
    assert ended.outcome is not None
    return ended.outcome


def _isolated(leaf: Leaf, ctx: Context, name: str, **options: Any) -> Ended:
    try:
        return isolation.in_worktree(ctx, name, partial(_attempt, leaf), **options)
    except Exception as raised:  # noqa: BLE001 - git's refusal is the step's failure
        return _raised(leaf, ctx, raised)


def _attempt(leaf: Leaf, ctx: Context) -> Ended:
    """Run the body; whatever it raises becomes a recorded outcome (runs.md R34)."""
    try:
        value = _asked_or_done(leaf, ctx)
        if isinstance(value, Asking):
            return Ended(asking=clean.question(ctx, value))
        outcome = clean.outcome(ctx, _frozen(leaf, outcome_of(leaf.shape.label, value)))
    except (Exception, SystemExit, asyncio.CancelledError) as raised:  # noqa: BLE001 - see R34
        return _raised(leaf, ctx, raised)
    return Ended(outcome=outcome, asked=_asked(ctx, outcome), error=_returned_error(outcome))


def _asked_or_done(leaf: Leaf, ctx: Context) -> Any:
    """What the body returned; once it has asked, nothing else it does counts (I25)."""
    questions = ctx.notes.questions
    questions.begin()
    if ctx.approved:
        actions.resume(ctx)
    try:
        value = leaf(ctx)
    except BaseException:
        if questions.waiting is None:
            raise
    return value if questions.waiting is None else questions.waiting


def _frozen(leaf: Leaf, outcome: Outcome) -> Outcome:
    try:
        return outcome.evolve(data=plain(outcome.data)).frozen()
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
    raised_here = not leaf.declared and not isinstance(raised, LoopError)
    return Ended(outcome=outcome, error=error, asked=_asked(ctx, outcome), raised=raised_here)


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
    if question.routing.get("purpose") == ACTION:
        asked = [(one.request, one.routing) for one in (question, *question.others)]
        return ask_approvals(state, place, asked, now)
    if question.routing.get("purpose") == QUESTION:
        return ask_questions(state, place, question.request, question.routing, now)
    routing = routing_of(place, state, question.request) | dict(question.routing)
    return put(state, place, question.request, routing, now)


def start_fields(leaf: LeafShape, inherited_ms: Callable[[], int | None]) -> dict[str, Any]:
    """The fields of `job:start`: the step's name, and the time an agent has (runs.md R38)."""
    fields: dict[str, Any] = {"label": leaf.label}
    if leaf.kind == "agent":
        limit = inherited_ms() if leaf.timeout_ms is None else leaf.timeout_ms
        fields |= {} if limit is None else {"timeoutMs": limit}
    return fields


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
    if ended.raised:
        fields["raised"] = True
    return fields


def error_fields(error: LoopError) -> dict[str, JSONValue]:
    """The fields of an `error` event."""
    return {"message": error.message, "code": error.code}


def idempotency_key(run_id: str, state: RunState, path: Path) -> str:
    """The same for every try of one logical attempt, another for every other attempt.

    Every graph and loop around the step adds which of its starts it is in, so a step in a round
    of a loop has another key in the next.
    """
    turns = []
    for end in range(1, len(path) + 1):
        scope = state.scopes.get(path[: end - 1]) if end > 1 else None
        loop = state.loops.get(path[:end])
        if scope is not None and path[end - 1] in scope.nodes:
            turns.append(f"{scope.invocation}.{scope.nodes[path[end - 1]].attempt}")
        elif loop is not None:
            part = "r" if loop.in_review else ""
            turns.append(f"{loop.invocation}.{loop.iteration}{part}")
    return f"{run_id}/{joined(path)}/{turns[-1] if turns else '1.1'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """What the state says to a job at its path."""

    needs: Mapping[str, Outcome] | None = None
    graph: GraphPosition | None = None
    last_review: Outcome | None = None
    last_outcome: Outcome | None = None
    last_gate: ConditionResult | None = None
    rework: tuple[str, str] | None = None
    checkpoint: Mapping[str, Any] | None = None
    rounds: tuple[int, ...] = ()
    loop_entries: tuple[str, ...] = ()
    depth: int = 0
    timeout_ms: int | None = None
    timeout_grace_ms: int | None = None

    @property
    def iteration(self) -> int:
        """The round of the nearest loop (runs.md R6)."""
        return self.rounds[-1] if self.rounds else 0

    def facts(self) -> dict[str, Any]:
        """What of the context comes from where the job stands, by the names it has there."""
        told = {item.name: getattr(self, item.name) for item in fields(self)}
        return told | {"iteration": self.iteration}


def position_of(shape: Shape, state: RunState, path: Path, task: str = JOB) -> Position:
    """Needs, review, round and place for the job, or the check, whose slot stands at `path`."""
    way = trail(shape, path, state.loops)
    if way is None:
        raise LoopError("CONFIG", f"the definition has no step at {'/'.join(path)}.")
    found = Position()
    for step in way:
        if isinstance(step.owner, GraphShape):
            assert step.node is not None
            found = _in_graph(found, step.owner, step.node, state, step.path)
        else:
            found = _in_loop(found, step.owner, state.loops[step.path], step.path)
    kept = state.checkpoints.get(path)
    found = evolve(found, rework=state.reworks.get(path), checkpoint=kept)
    if way and task not in (JOB, WHEN):
        loop = state.loops[path]
        last = loop.ended if task == COMPLETE else loop.body
        return evolve(found, last_outcome=last, last_gate=loop.last_gate)
    return found


def _in_loop(outer: Position, shape: LoopShape, loop: LoopState, path: Path) -> Position:
    """The position of the body or the review of a loop (runs.md R6, R8, R9, R77)."""
    first = outer.last_review if loop.iteration <= 1 else None
    entry = (f"{joined(path)}/{loop.invocation}",) if watches(shape) else ()
    return evolve(
        outer,
        needs=None,
        # A review is answered by the body alone; a body that is tried again answers it anew.
        last_review=None if loop.in_review or loop.body is not None else loop.last_review or first,
        last_outcome=loop.body if loop.in_review else loop.before,
        last_gate=loop.last_gate,
        rounds=(*outer.rounds, loop.iteration),
        loop_entries=(*outer.loop_entries, *entry),
        depth=outer.depth + 1,
    )


def _in_graph(
    outer: Position, graph: GraphShape, node: NodeShape, state: RunState, path: Path
) -> Position:
    """The position of a node in the graph at `outer`; time limits and reviews reach inwards."""
    scope = state.scopes[path[:-1]]
    here = scope.nodes[node.name]
    # A review of a graph is answered by the first run of each of its steps (runs.md R8).
    review = outer.last_review if here.attempt == 1 else None
    grace = node.timeout_grace_ms
    return evolve(
        outer,
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
            isolate=node.isolate,
            on_conflict=graph.on_conflict,
            file=node.file,
        ),
        last_review=here.last_review or review,
        depth=outer.depth + 1,
        timeout_ms=outer.timeout_ms if node.timeout_ms is None else node.timeout_ms,
        timeout_grace_ms=outer.timeout_grace_ms if grace is None else grace,
    )
