from __future__ import annotations

from runs.kernel.commands import StartStep, WithdrawStep, commands
from runs.kernel.events import Event, EventKind
from runs.kernel.scopes import opened, watching, with_node, with_nodes, worked_on
from runs.kernel.slots import RunState
from runs.kernel.state import fold, is_folded, reduce
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import graph, node


def test_unknown_kinds_change_nothing_but_the_position() -> None:
    state = reduce(RunState(), Event("engine:text", ("x",), {"delta": "hi", "new": 1}, seq=7))

    assert state == RunState(seq=7)


def test_unknown_keys_are_accepted() -> None:
    started = Event(EventKind.RUN_START, (), {"session": 1, "source": {"path": "x"}, "new": 1})

    assert fold([started]).started


def test_reduce_leaves_the_state_it_was_given() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    before = run.state
    copy = fold(run.events)
    run.ends("g", "a")

    assert before == copy
    assert before != run.state


def test_changes_of_the_shared_state_come_with_the_end_of_a_step() -> None:
    run = Puppet(graph(node("a"), node("b")))
    changes = {"set": {"n": 1, "m": 2}, "removed": []}
    ended = {"label": "a", "outcome": {"status": "pass"}}
    run.append(EventKind.JOB_END, ("g", "a"), **ended, state=changes)
    run.append(EventKind.JOB_END, ("g", "b"), **ended, state={"set": {"n": 3}, "removed": ["m"]})

    assert run.state.shared == {"n": 3}


def test_a_scopes_lists_follow_its_nodes() -> None:
    scope = opened("abc", {"b": ["a"], "c": ["a", "b"]}, invocation=1, at=0)
    assert list(scope.names(scope.ready)) == ["a"]

    scope = with_node(scope, "a", at_work=True, status="active")
    assert list(scope.names(scope.open)) == ["a"]
    assert scope.ready == scope.watched == ()
    scope = worked_on(scope, "a", at_work=False)
    assert list(scope.names(scope.watched or ())) == ["a"]
    scope = with_node(scope, "a", at_work=False, status="done")
    scope = with_node(scope, "b", at_work=False, status="done")
    assert scope == watching(with_nodes(scope, scope.nodes), lambda _: False)


def test_a_graph_start_without_needs_offers_every_node() -> None:
    scope = opened("ab", {}, invocation=1, at=0)

    assert list(scope.names(scope.ready)) == ["a", "b"]


def test_commands_are_read_off_the_change_of_state() -> None:
    shape = graph(node("a"), node("b"))
    run = Puppet(shape)
    begun = run.state

    assert commands(shape, RunState(), begun) == [
        StartStep(path=("g", "a"), number=1),
        StartStep(path=("g", "b"), number=1),
    ]
    assert commands(shape, begun, begun) == []
    run.starts("g", "a")
    assert commands(shape, begun, run.state) == []
    run = Puppet(shape)
    run.cancels()
    assert commands(shape, begun, run.state) == [
        WithdrawStep(path=("g", "a"), number=1),
        WithdrawStep(path=("g", "b"), number=1),
    ]


def test_a_claimed_start_is_not_taken_back() -> None:
    shape = graph(node("a"))
    run = Puppet(shape)
    before = run.state
    run.starts("g", "a")

    assert commands(shape, before, run.state) == []


def test_kinds_that_move_a_run_are_known() -> None:
    assert is_folded("dag:node")
    assert is_folded("callback-submitted")
    assert not is_folded("log")
    assert not is_folded("artifact:stored")


def test_a_new_session_runs_what_has_not_passed_and_keeps_what_waits() -> None:
    run = Puppet(graph(node("a"), node("b", "a"), node("c", "b")))
    run.ends("g", "a")
    run.ends("g", "b", outcome="fail")
    assert run.outcome.status == "fail"

    run.append(EventKind.RUN_START, (), session=2)
    run.settle()
    assert run.ready() == ["b"]
    run.ends("g", "b")
    run.ends("g", "c")
    assert [end.fields["outcome"]["status"] for end in run.kinds(EventKind.RUN_END)] == [
        "fail",
        "pass",
    ]
    assert run.phases("a") == ["start", "pass"]


def test_wire_form_keeps_its_envelope_whatever_the_fields_say() -> None:
    wire = Event("proof", ("a",), {"path": "x.html", "name": "n"}, ts=5).to_wire()

    assert wire == {"kind": "proof", "ts": 5, "path": ["a"], "name": "n"}
