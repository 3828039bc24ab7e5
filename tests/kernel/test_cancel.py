from __future__ import annotations

from runs.kernel.events import EventKind
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import CODE, ask, graph, node, step


def test_nothing_starts_after_a_cancel_and_what_runs_may_end() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    run.starts("g", "a")
    run.cancels()

    assert run.state.ended is None
    run.ends("g", "a")
    assert run.phases("b") == ["aborted"]
    assert run.outcome.status == "aborted"
    assert run.outcome.data["a"] == {"status": "pass"}  # type: ignore[index, call-overload]  # it is a mapping


def test_a_start_nobody_claimed_is_taken_back() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    run.cancels()

    assert run.due == {}
    assert run.phases("a") == ["start", "aborted"]
    assert run.outcome.status == "aborted"


def test_a_check_nobody_claimed_is_taken_back() -> None:
    run = Puppet(graph(node("a", when=CODE)))
    run.cancels()

    assert run.due == {}
    assert run.phases("a") == ["aborted"]


def test_a_cancel_while_a_person_is_asked_keeps_the_question() -> None:
    run = Puppet(graph(node("ok", job=ask()), node("b", "ok")))
    run.cancels()

    assert run.outcome.status == "aborted"
    assert len(run.pending) == 1
    assert run.phases("ok") == ["start", "paused"]
    assert run.phases("b") == ["aborted"]


def test_a_cancel_reaches_questions_in_inner_graphs() -> None:
    inner = graph(node("ok", job=ask()), name="in")
    run = Puppet(graph(node("x", job=inner), node("y", "x")))
    run.cancels()

    assert run.outcome.status == "aborted"
    assert run.phases("x") == ["start", "paused", "aborted"]
    assert len(run.pending) == 1


def test_a_cancelled_question_at_the_root_ends_the_run_and_stays_open() -> None:
    run = Puppet(ask())
    run.cancels()

    assert run.outcome.status == "aborted"
    assert len(run.pending) == 1


def test_a_lost_step_of_a_cancelled_run_asks_nobody() -> None:
    run = Puppet(graph(node("a")))
    run.starts("g", "a")
    run.append(EventKind.RUN_CANCEL, reason="stop")
    run.append(EventKind.STEP_LOST, ("g", "a"), number=1)
    del run.due["job", ("g", "a")]
    run.settle()

    assert run.outcome.status == "aborted"
    assert run.pending == []


def test_a_single_step_ends_aborted_whatever_it_returns() -> None:
    run = Puppet(step())
    run.starts()
    run.cancels()
    run.ends()

    assert run.outcome.status == "aborted"


def test_a_held_run_can_be_cancelled() -> None:
    run = Puppet(graph(node("a")))
    run.append(EventKind.RUN_HELD, reason="changed")
    run.cancels()

    assert run.outcome.status == "aborted"
