"""What a run does while a question of its own is out."""

from __future__ import annotations

from typing import Any

import pytest

from runs.kernel.events import EventKind
from runs.kernel.outcomes import Outcome, kickback
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import ask, graph, node

YES = {"approved": True}


def test_a_question_pauses_its_node_and_passes_on_yes() -> None:
    run = Puppet(graph(node("a"), node("ok", "a", job=ask()), node("b", "ok")))
    run.ends("g", "a", outcome=Outcome(status="pass", summary="v1"))

    assert run.phases("ok") == ["start", "paused"]
    paused = run.node("g", "ok").outcome
    assert paused.summary == "waiting for a person: Ship it?"
    assert paused.data["input"] == {"a": "v1"}
    assert run.ready() == []
    run.answers(YES)
    assert run.node("g", "ok").outcome == Outcome(
        status="pass", summary="approved: Ship it?", data={"approved": True}
    )
    assert run.ready() == ["b"]


def test_the_order_of_a_questions_events() -> None:
    run = Puppet(graph(node("ok", job=ask(target="x", routing={"priority": 2}))))
    run.answers({"approved": False, "note": "token=abc is wrong"})
    kinds = [str(event.kind) for event in run.events if event.path != ()]

    assert kinds == [
        "workflow:start",
        "dag:start",
        "dag:node",
        "job:start",
        "callback-requested",
        "callback-routed",
        "dag:node",
        "job:end",
        "dag:node",
        "dag:kickback",
        "dag:node",
        "dag:end",
    ]
    (routed,) = run.kinds(EventKind.ROUTED)
    assert routed.fields["priority"] == 2
    assert routed.fields["sendBacksLeft"] == 0
    (ended,) = run.kinds(EventKind.JOB_END)
    assert ended.fields["outcome"]["summary"] == "[redacted] is wrong"
    assert ended.fields["asked"]["gateId"] == "ask"
    assert ended.fields["asked"]["question"] == "Ship it?"


def test_routing_says_what_a_yes_and_a_no_lead_to() -> None:
    shape = graph(
        node("a"),
        node(
            "ok", "a", job=ask(target="a", routing={"dueInSeconds": 60}), accepts_kickback_to=("a",)
        ),
        node("b", "ok"),
        max_kickbacks={"a": 2},
    )
    run = Puppet(shape)
    run.ends("g", "a")
    (routed,) = run.kinds(EventKind.ROUTED)

    assert routed.fields["onYes"] == ["b"]
    assert routed.fields["target"] == "a"
    assert routed.fields["sendBacksLeft"] == 2
    assert routed.fields["dueAt"] == "1970-01-01T00:01:01.010Z"
    assert "dueInSeconds" not in routed.fields


def test_other_branches_go_on_while_one_waits() -> None:
    run = Puppet(graph(node("ok", job=ask()), node("a"), node("b", "a")))
    run.ends("g", "a")
    run.ends("g", "b")

    assert run.state.ended is None
    run.answers(YES)
    assert run.outcome.status == "pass"


def test_under_the_stop_policy_nothing_more_starts_after_a_pause() -> None:
    shape = graph(node("ok", job=ask()), node("a"), node("b", "a"), pause_policy="stop")
    run = Puppet(shape)

    # The pause came first, so not even `a` has started; what runs may finish.
    assert run.ready() in ([], ["a"])
    if run.ready():
        run.ends("g", "a")
    assert run.ready() == []
    run.answers(YES)
    assert run.ready() != []


@pytest.mark.parametrize("policy", ["continue", "stop"])
def test_a_send_back_waits_for_a_paused_sibling_only_under_stop(policy: Any) -> None:
    shape = graph(
        node("a"),
        node("b", "a", accepts_kickback_to=("a",)),
        node("ok", job=ask()),
        max_kickbacks=1,
        concurrency=2,
        pause_policy=policy,
    )
    run = Puppet(shape)
    if not run.due:  # the approval was put before anything else could start
        return
    run.ends("g", "a")
    if ("job", ("g", "b")) in run.due:
        run.ends("g", "b", outcome=kickback("a", "again"))
        assert (run.kinds(EventKind.SEND_BACK) == []) is (policy == "stop")


def test_after_the_answer_a_held_back_send_back_is_handled() -> None:
    shape = graph(
        node("a"),
        node("b", "a", accepts_kickback_to=("a",)),
        node("ok", "a", job=ask()),
        max_kickbacks=1,
        pause_policy="stop",
    )
    run = Puppet(shape)
    run.ends("g", "a")
    run.ends("g", "b", outcome=kickback("a", "again"))
    assert run.kinds(EventKind.SEND_BACK) == []
    assert run.ready() == []
    run.answers(YES)
    assert [event.fields["accepted"] for event in run.kinds(EventKind.SEND_BACK)] == [True]


def waiting_in_the_way(**more: Any) -> Puppet:
    shape = graph(
        node("a"),
        node("ok", "a", job=ask(**more)),
        node("b", "a", accepts_kickback_to=("a",)),
        max_kickbacks=1,
    )
    run = Puppet(shape)
    run.ends("g", "a", outcome=Outcome(status="pass", summary="same"))
    return run


def test_a_send_back_into_a_waiting_branch_supersedes_its_question() -> None:
    run = waiting_in_the_way()
    (question,) = run.pending
    run.ends("g", "b", outcome=kickback("a", "again"))

    assert run.pending == []
    (superseded,) = run.kinds(EventKind.SUPERSEDED)
    assert superseded.fields == {"requestId": question, "supersededBy": question}
    run.ends("g", "a", outcome=Outcome(status="pass", summary="same"))
    # The same subject again is the same question, asked anew.
    assert run.pending == [question]
    run.ends("g", "b")
    run.answers(YES)
    assert run.outcome.status == "pass"


def test_an_answer_given_before_applies_when_the_question_returns() -> None:
    run = waiting_in_the_way()
    run.answers(YES)
    run.ends("g", "b", outcome=kickback("a", "again"))
    run.ends("g", "a", outcome=Outcome(status="pass", summary="same"))

    assert run.node("g", "ok").outcome.status == "pass"
    assert len(run.kinds(EventKind.REQUESTED)) == 1


def test_per_attempt_asks_anew_for_every_attempt() -> None:
    run = waiting_in_the_way(per_attempt=True)
    run.answers(YES)
    run.ends("g", "b", outcome=kickback("a", "again"))
    run.ends("g", "a", outcome=Outcome(status="pass", summary="same"))

    (question,) = run.pending
    held = run.state.callbacks.requests[question]
    assert held.request.input == {"a": "same", "attempt": 2}


def test_two_steps_with_one_question_share_it_and_its_answer() -> None:
    run = Puppet(graph(node("x", job=ask()), node("y", job=ask())))

    assert len(run.kinds(EventKind.REQUESTED)) == 1
    run.answers(YES)
    assert run.outcome.status == "pass"
    ends = run.kinds(EventKind.JOB_END)
    assert len({event.fields["asked"]["requestId"] for event in ends}) == 1


def test_a_shared_question_outlives_the_send_back_into_one_of_its_steps() -> None:
    shape = graph(
        node("a"),
        node("x", "a", job=ask(has_input=True)),
        node("y", job=ask(has_input=True)),
        node("b", "a", accepts_kickback_to=("a",)),
        max_kickbacks=1,
    )
    run = Puppet(shape)
    run.ends("g", "a")
    run.ends("g", "b", outcome=kickback("a", "again"))

    assert len(run.pending) == 1
    assert run.kinds(EventKind.SUPERSEDED) == []


def test_another_question_of_the_same_gate_ends_the_first() -> None:
    run = Puppet(graph(node("x", job=ask()), node("y", job=ask(question="Sure?"))))

    assert run.node("g", "x").outcome.status == "fail"
    assert "superseded" in run.node("g", "x").outcome.summary
    assert run.node("g", "x").outcome.data["decisionText"] == "Ship it?"
    assert run.kinds(EventKind.ERROR)[0].path == ("g", "x")


def test_a_withdrawn_question_fails_its_step_and_may_be_asked_again() -> None:
    run = Puppet(graph(node("ok", job=ask())))
    (question,) = run.pending
    run.append(EventKind.SUPERSEDED, requestId=question, supersededBy=question)
    run.append(EventKind.WITHDRAWN, requestId=question, reason="too late")
    run.settle()

    assert run.outcome.status == "fail"
    assert "withdrawn: too late" in run.node("g", "ok").outcome.summary
    request = run.state.callbacks.requests[question].request
    run.append(EventKind.REQUESTED, request=request.to_wire())
    assert run.state.withdrawn == {}


def test_an_answer_on_hold_waits_for_somebody_to_resume() -> None:
    run = Puppet(graph(node("ok", job=ask(routing={"onAnswer": "hold"})), node("b", "ok")))
    run.answers(YES)
    assert run.ready() == []

    run.append(EventKind.RUN_RESUMED)
    run.settle()
    assert run.ready() == ["b"]


def test_what_waited_goes_on_only_when_its_graph_has_a_slot() -> None:
    inner = graph(node("ok", job=ask()), node("y", "ok"), name="in")
    run = Puppet(graph(node("x", job=inner), node("z"), concurrency=1))

    assert run.node("g", "x").status == "paused"
    assert run.ready() == ["z"]
    run.answers(YES)
    assert run.ready() == ["z"]
    run.ends("g", "z")
    assert run.node("g", "x").status == "active"
    assert run.ready() == ["y"]
    run.ends("g", "x", "in", "y")
    assert run.outcome.status == "pass"


def test_params_are_filled_into_a_question() -> None:
    leaf = ask(question="Ship {version} to {where}? {missing} {count} {dry}")
    run = Puppet(
        graph(node("ok", job=leaf)),
        params={"version": "1.2", "where": "EU", "count": 2, "dry": True},
    )

    assert run.node("g", "ok").outcome.data["decisionText"] == ("Ship 1.2 to EU? {missing} 2 true")


def test_an_unattended_session_records_the_pause_and_leaves() -> None:
    inner = graph(node("ok", job=ask()), node("y", "ok"), name="in")
    run = Puppet(graph(node("x", job=inner), node("z", "x"), node("w")), attended=False)
    run.ends("g", "w")

    assert run.outcome.status == "paused"
    assert run.outcome.summary == "waiting for a person: Ship it?"
    assert [event.path for event in run.kinds(EventKind.GRAPH_END)] == [("g", "x", "in"), ("g",)]
    assert run.phases("x") == ["start", "paused"]
    assert run.phases("z") == []
    assert run.outcome.to_json()["data"]["x"]["status"] == "paused"  # type: ignore[index, call-overload]  # a mapping of mappings
    (ended,) = (
        event for event in run.kinds(EventKind.JOB_END) if event.path == ("g", "x", "in", "ok")
    )
    assert ended.fields["outcome"]["status"] == "paused"
    assert ended.fields["asked"]["requestId"] in run.pending


def test_a_pause_without_a_question_is_let_go_when_somebody_resumes() -> None:
    run = Puppet(graph(node("a")))
    run.ends("g", "a", outcome=Outcome(status="paused", summary="limit"))
    assert run.state.ended is None

    run.append(EventKind.RUN_RESUMED)
    run.settle()
    run.ends("g", "a")
    assert run.outcome.status == "pass"
