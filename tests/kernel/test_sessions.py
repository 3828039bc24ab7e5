"""A record that another session takes up again (runs.md section 14)."""

from __future__ import annotations

from dataclasses import replace

from runs.kernel.events import EventKind
from runs.kernel.state import fold
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import ask, graph, node


def test_a_step_that_was_running_is_never_simply_started_again() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    run.ends("g", "a")
    run.append(EventKind.JOB_START, ("g", "b"), label="b")
    run.append(EventKind.RUN_START, (), session=2)

    assert run.node("g", "a").outcome.passed
    assert run.node("g", "b").status == "active"
    assert run.state.slots["g", "b"].status == "running"


def test_the_parameters_are_those_of_the_last_session_that_named_any() -> None:
    run = Puppet(graph(node("a")), params={"n": 1})
    run.append(EventKind.RUN_START, (), session=2)
    assert run.state.params == {"n": 1}
    run.append(EventKind.RUN_START, (), session=3, params={"n": 2})
    assert run.state.params == {"n": 2}


def test_a_step_told_again_changes_nothing() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    run.ends("g", "a")
    before = run.state
    told = {"node": "a", "attempt": 1, "reused": True}
    run.append(EventKind.NODE, ("g",), phase="start", **told)
    run.append(EventKind.NODE, ("g",), phase="done", outcome={"status": "pass"}, **told)

    assert replace(run.state, seq=before.seq) == before


def test_a_graph_that_starts_over_waits_for_nothing_of_before() -> None:
    run = Puppet(graph(node("ok", job=ask()), node("a")))
    run.append(EventKind.JOB_START, ("g", "a"), label="a")
    run.append(EventKind.RUN_START, (), session=2)
    run.append(EventKind.STEP_READY, (), number=2)
    run.settle()

    assert len(run.kinds(EventKind.GRAPH_START)) == 2
    assert run.ready() == ["a"]
    first, second = (event.fields["recordId"] for event in run.kinds(EventKind.GRAPH_ANCHOR))
    assert first != second
    assert fold(run.events) == run.state


def test_a_step_whose_work_is_recorded_is_done_though_its_node_was_not() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    for kind in (EventKind.JOB_START, EventKind.JOB_END):
        run.append(kind, ("g", "a"), label="a", outcome={"status": "pass", "summary": "made"})
    run.append(EventKind.RUN_START, (), session=2)
    run.settle()

    assert run.phases("a") == ["start", "pass"]
    assert [path for _, path in run.state.queued if path] == [("g", "b")]


def test_a_step_that_is_due_and_had_not_begun_is_started_once() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    run.append(EventKind.RUN_START, (), session=2)
    assert [path for _, path in run.state.queued if path] == []
    run.settle()

    assert [path for _, path in run.state.queued if path] == [("g", "a")]
    assert run.phases("a") == ["start", "start"]
