"""What holds for every graph, every outcome and every order in which things happen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runs.kernel import deadlines
from runs.kernel.conditions import ConditionResult
from runs.kernel.errors import LoopError
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import Shape, shape_from_json, shape_identity
from runs.kernel.jsonable import canonical_json, parse_json
from runs.kernel.loop_events import AFTER, COMPLETE, Found
from runs.kernel.outcomes import Outcome, kickback
from runs.kernel.places import graph_at, trail
from runs.kernel.slots import JOB, WHEN
from runs.kernel.state import fold
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import shapes

STEPS = 400
# Whoever loses every worker for ever keeps a run from its end.
LOSSES = 20
ANSWERS = [{"approved": True}, {"approved": False}, {"approved": False, "note": "not yet"}]
RECONCILED = [{"action": "finished"}, {"action": "run-again"}, {"action": "fail"}]

# What an author may say about the time of a question; a puppet's step takes ten milliseconds.
TIMES: list[dict[str, Any]] = [
    {},
    {},
    {"expiresInSeconds": 0.02},
    {"expiresInSeconds": 0.02, "onExpiry": "answer", "defaultAnswer": {"approved": True}},
    {"expiresInSeconds": 0.05, "onExpiry": "escalate", "remindBeforeSeconds": [0.02]},
    {"dueInSeconds": 0.01, "expiresInSeconds": 0.03, "onExpiry": "stay-open"},
]


@st.composite
def timed_shapes(draw: st.DrawFn) -> Shape:
    """Any shape, some of whose questions have an end in time."""
    wire: Any = parse_json(canonical_json(draw(shapes()).to_json()))
    for ask in _asks(wire):
        ask["routing"] = draw(st.sampled_from(TIMES))
    return shape_from_json(wire)


def _asks(wire: Any) -> Iterator[dict[str, Any]]:
    parts = wire.values() if isinstance(wire, dict) else wire if isinstance(wire, list) else ()
    for part in parts:
        yield from _asks(part)
    if isinstance(wire, dict) and isinstance(wire.get("ask"), dict):
        yield wire["ask"]


def _outcome(draw: Any, puppet: Puppet, path: Path) -> Outcome:
    way = trail(puppet.shape, path, puppet.state.loops)
    node = way[-1].node if way else None
    back = () if node is None else node.accepts_kickback_to
    kind = draw(st.sampled_from(["pass", "pass", "fail", "exhausted", "back", "stray", "warn"]))
    if kind == "back" and back:
        return kickback(draw(st.sampled_from(back)), "once more")
    if kind == "warn" and back:
        return kickback(draw(st.sampled_from(back)), "once more", status="pass")
    if kind == "stray":
        return kickback("nowhere", "lost")
    return Outcome(status=kind if kind in ("fail", "exhausted") else "pass", summary=kind)


def _found(draw: Any, task: str) -> Found | LoopError:
    if draw(st.integers(0, 9)) == 0:
        return LoopError("VALIDATION", "no idea", phase="until")
    if task == AFTER:
        return {"workspace": draw(st.sampled_from(["x", "y"]))} if draw(st.booleans()) else {}
    return {} if task == COMPLETE else ConditionResult(met=draw(st.booleans()), reason="because")


def _move(puppet: Puppet, data: st.DataObject, *, cancel: bool) -> bool:
    """Let one possible thing happen; False when nothing can."""
    moves: list[tuple[str, Any]] = [(task, path) for task, path in puppet.due]
    moves += [("answer", request_id) for request_id in puppet.pending]
    sleeps = bool(puppet.state.waits) and not puppet.state.cancelled
    if sleeps or deadlines.next_at(puppet.state) is not None:
        moves.append(("wait", ()))
    if not moves:
        return False
    if cancel and data.draw(st.integers(0, 9)) == 0:
        puppet.cancels()
        return True
    what, where = data.draw(st.sampled_from(moves))
    if what == "answer":
        reconciles = where.startswith("reconcile:")
        puppet.answers(data.draw(st.sampled_from(RECONCILED if reconciles else ANSWERS)), where)
    elif what == "wait":
        puppet.waits()
    elif len(puppet.kinds(EventKind.STEP_LOST)) < LOSSES and data.draw(st.integers(0, 9)) == 0:
        puppet.loses(what, *where)
    else:
        _does(puppet, data, what, where)
    return True


def _does(puppet: Puppet, data: st.DataObject, task: str, path: Path) -> None:
    """A worker comes to the end of what it was given."""
    if task == WHEN:
        puppet.checks(*path, met=data.draw(st.booleans()))
    elif task != JOB:
        puppet.finds(task, *path, found=_found(data.draw, task))
    else:
        raised = data.draw(st.integers(0, 9)) == 0
        puppet.ends(*path, outcome=_outcome(data.draw, puppet, path), raised=raised)


def _run(shape: Shape, data: st.DataObject, *, cancel: bool = False) -> Puppet:
    puppet = Puppet(shape)
    for _ in range(STEPS):
        may_cancel = cancel and not puppet.state.cancelled
        if puppet.state.ended is not None or not _move(puppet, data, cancel=may_cancel):
            break
    return puppet


@settings(max_examples=settings().max_examples // 3)
@given(timed_shapes(), st.data())
def test_a_run_ends_once_nothing_is_left_to_happen(shape: Shape, data: st.DataObject) -> None:
    puppet = _run(shape, data)

    assert puppet.state.ended is not None
    assert puppet.events[-1].kind == EventKind.RUN_END
    assert len(puppet.kinds(EventKind.RUN_END)) == 1
    assert puppet.due == {}


@settings(max_examples=settings().max_examples // 3)
@given(timed_shapes(), st.data())
def test_a_cancelled_run_ends_aborted_as_soon_as_its_steps_have(
    shape: Shape, data: st.DataObject
) -> None:
    puppet = _run(shape, data, cancel=True)

    assert puppet.state.ended is not None
    if puppet.state.cancelled:
        assert puppet.outcome.status == "aborted"


@settings(max_examples=settings().max_examples // 3)
@given(timed_shapes(), st.data())
def test_every_attempt_has_one_final_event(shape: Shape, data: st.DataObject) -> None:
    puppet = _run(shape, data)

    final, paused, replaced = _finals(puppet.events)
    for key, count in final.items():
        assert count == 1 + replaced[key], key
    for key in paused:
        path, invocation, name, attempt = key
        assert final[key] or (path, invocation, name, attempt + 1) in final | paused


def _finals(events: list[Event]) -> tuple[Counter[Any], Counter[Any], Counter[Any]]:
    """Per attempt: final events, pauses, and failures put in the place of a stray send-back."""
    final: Counter[Any] = Counter()
    paused: Counter[Any] = Counter()
    replaced: Counter[Any] = Counter()
    begun: Counter[Path] = Counter()
    attempts: dict[Any, int] = {}
    for event in events:
        if event.kind == EventKind.GRAPH_START:
            begun[event.path] += 1
        elif event.kind == EventKind.NODE and event.fields["phase"] != "start":
            at = (event.path, begun[event.path], event.fields["node"])
            attempts[at] = event.fields["attempt"]
            waits = event.fields["outcome"]["status"] == "paused"
            (paused if waits else final)[*at, event.fields["attempt"]] += 1
        elif event.kind == EventKind.SEND_BACK and "limit" not in event.fields:
            at = (event.path, begun[event.path], event.fields["from"])
            replaced[*at, attempts[at]] += 1
    return final, paused, replaced


@settings(max_examples=settings().max_examples // 3)
@given(timed_shapes(), st.data())
def test_no_node_is_built_more_often_than_its_limit_allows(
    shape: Shape, data: st.DataObject
) -> None:
    puppet = _run(shape, data)

    for path, scope in puppet.state.scopes.items():
        if scope.invocation != puppet.state.slots[path[:-1]].number:
            # A loop has gone on, and another graph of the same name may be meant by now.
            continue
        owner = graph_at(shape, path, puppet.state.loops)
        assert owner is not None
        limits = owner.max_kickbacks
        if isinstance(limits, int | None):
            assert scope.accepted_count <= (limits or 0)
        for target, count in scope.accepted.items():
            assert count <= owner.limit_for(target)
        for node in scope.nodes.values():
            assert node.attempt <= scope.accepted_count + 1


@settings(max_examples=settings().max_examples // 3)
@given(timed_shapes(), st.data())
def test_the_record_alone_gives_the_same_state(shape: Shape, data: st.DataObject) -> None:
    puppet = _run(shape, data, cancel=True)

    assert fold(puppet.events) == puppet.state
    for event in puppet.events:
        canonical_json(event.to_wire())


@given(timed_shapes())
def test_a_shape_survives_its_canonical_text(shape: Shape) -> None:
    wire: Any = parse_json(canonical_json(shape.to_json()))

    assert shape_from_json(shape.to_json()) == shape
    assert shape_from_json(wire) == shape
    assert shape_identity(shape_from_json(wire)) == shape_identity(shape)


@settings(max_examples=settings().max_examples // 3)
@given(timed_shapes(), st.data())
def test_an_unattended_session_leaves_when_only_questions_are_left(
    shape: Shape, data: st.DataObject
) -> None:
    puppet = Puppet(shape, attended=False)
    for _ in range(STEPS):
        jobs = [(task, path) for task, path in puppet.due]
        if not jobs and puppet.state.ended is None and puppet.state.waits:
            puppet.waits()
            continue
        if not jobs:
            break
        task, path = data.draw(st.sampled_from(jobs))
        _does(puppet, data, task, path)

    assert puppet.state.ended is not None
    waits = [name for name in puppet.pending if name]
    assert puppet.outcome.status != "paused" or waits
