"""A loop moved by hand: slots, losses, questions, sessions (runs.md sections 8 and 14)."""

from __future__ import annotations

from runs.kernel.conditions import never
from runs.kernel.events import EventKind
from runs.kernel.graph import LoopShape
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import ask, graph, node, step

YES, NO = {"approved": True}, {"approved": False, "note": "not yet"}


def asked_loop(**more: object) -> LoopShape:
    review = ask(per_attempt=True)
    return LoopShape(name="l", body=step("write"), review=review, max=3, **more)  # type: ignore[arg-type]  # a test's own options


def test_a_round_begins_only_when_its_graph_has_a_slot_r116() -> None:
    run = Puppet(graph(node("a", job=asked_loop()), node("b"), concurrency=1))
    run.ends("g", "a", "l")
    # The loop waits for a person, so its slot is free for the other node.
    assert run.ready() == ["b"]
    run.answers(NO)
    assert run.ready() == ["b"]
    run.ends("g", "b")
    assert run.ready() == ["l"]
    assert run.state.loops["g", "a", "l"].iteration == 2


def test_a_lost_body_is_asked_about_once_and_its_round_goes_on_i5() -> None:
    run = Puppet(LoopShape(name="l", body=step("write"), until=never.shape, max=2))
    run.loses("job", "l")
    assert len(run.pending) == 1
    run.answers({"action": "finished"})
    assert run.state.loops["l",].iteration == 2
    run.ends("l")
    assert run.outcome.status == "exhausted"


def test_a_lost_body_that_may_repeat_is_given_out_again() -> None:
    run = Puppet(LoopShape(name="l", body=step("write", retry_safe=True), max=1))
    run.loses("job", "l")
    assert run.pending == []
    run.ends("l")
    assert run.outcome.status == "pass"


def test_a_cancel_while_a_person_reviews_keeps_the_question_r257() -> None:
    run = Puppet(asked_loop())
    run.ends("l")
    run.cancels()
    assert run.outcome.status == "aborted"
    assert len(run.pending) == 1


def test_a_loop_that_waited_for_a_person_carries_on_from_there_r250() -> None:
    run = Puppet(asked_loop(), attended=False)
    run.ends("l")
    assert str(run.outcome.status) == "paused"
    run.append(EventKind.RUN_START, (), session=2)
    run.attended = True
    run.settle()
    assert len(run.kinds(EventKind.REQUESTED)) == 1
    run.answers(YES)
    assert run.outcome.status == "pass"
    assert len(run.kinds(EventKind.LOOP_ITERATION)) == 1


def test_a_loop_that_failed_runs_from_its_first_round_r228() -> None:
    run = Puppet(LoopShape(name="l", body=step("write"), until=never.shape, max=1))
    run.ends("l")
    run.append(EventKind.RUN_START, (), session=2)
    run.settle()
    assert run.ready() == ["l"]
    assert [it.fields["iteration"] for it in run.kinds(EventKind.LOOP_ITERATION)] == [1, 1]


def test_what_a_graph_in_the_body_finished_counts_in_the_first_round_r229() -> None:
    body = graph(node("a"), node("b", "a"), name="w")
    run = Puppet(LoopShape(name="l", body=body, until=never.shape, max=2))
    run.ends("l", "w", "a")
    run.ends("l", "w", "b", outcome="fail")
    run.ends("l", "w", "a")
    run.ends("l", "w", "b")
    run.append(EventKind.RUN_START, (), session=2)
    run.settle()
    # The last round finished both, so the first round of this session has nothing to do.
    assert run.ready() == ["a"]
    assert run.state.loops["l",].iteration == 2
