from __future__ import annotations

from typing import Any

import pytest

from runs.kernel.conditions import failed, passed
from runs.kernel.decide import decide
from runs.kernel.errors import LoopError
from runs.kernel.events import EventKind
from runs.kernel.outcomes import Outcome, failing
from runs.kernel.slots import RunState
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import CODE, graph, node, step


def test_nothing_follows_before_the_start_and_after_the_end() -> None:
    done = Puppet(graph())

    assert decide(graph(), RunState(), 0) == []
    assert decide(graph(), done.state, 0) == []


def test_an_empty_graph_passes() -> None:
    run = Puppet(graph())

    assert run.outcome.status == "pass"
    assert [str(event.kind) for event in run.events] == [
        "run:start",
        "workflow:start",
        "dag:start",
        "dag:end",
        "run:end",
    ]


def test_a_single_step_runs_at_the_root() -> None:
    run = Puppet(step())
    run.ends(outcome=Outcome(status="pass", summary="s", data=1))

    assert run.outcome == Outcome(status="pass", summary="s", data=1)


def test_a_node_runs_when_all_it_needs_has_passed() -> None:
    run = Puppet(graph(node("a"), node("b"), node("c", "a", "b")))

    assert run.ready() == ["a", "b"]
    run.ends("g", "b")
    assert run.ready() == ["a"]
    run.ends("g", "a")
    assert run.ready() == ["c"]


@pytest.mark.parametrize("status", ["fail", "exhausted", "aborted"])
def test_a_required_need_that_did_not_pass_blocks(status: str) -> None:
    run = Puppet(graph(node("a"), node("b", "a"), stop_on_error=False))
    run.ends("g", "a", outcome=status)

    assert run.phases("b") == ["aborted"]
    assert run.outcome.status == "fail"


@pytest.mark.parametrize("status", ["fail", "exhausted", "aborted"])
def test_an_optional_need_never_blocks_and_never_fails_the_graph(status: str) -> None:
    run = Puppet(graph(node("a", optional=True), node("b", "a")))
    run.ends("g", "a", outcome=status)
    run.ends("g", "b")

    assert run.outcome.status == "pass"


def test_at_most_four_run_at_once_and_a_free_slot_is_used() -> None:
    run = Puppet(graph(*(node(name) for name in "abcdef")))

    assert run.ready() == ["a", "b", "c", "d"]
    run.ends("g", "c")
    assert run.ready() == ["a", "b", "d", "e"]


def test_the_first_required_failure_stops_what_has_not_started() -> None:
    run = Puppet(graph(node("a"), node("b"), node("c"), concurrency=2))
    run.ends("g", "a", outcome="fail")

    assert run.ready() == ["b"]
    run.ends("g", "b")
    assert run.phases("b") == ["start", "pass"]
    assert run.phases("c") == ["aborted"]
    assert run.outcome.summary == "2 required steps did not complete"


def test_without_stop_on_error_only_descendants_are_blocked() -> None:
    run = Puppet(graph(node("a"), node("b", "a"), node("c"), concurrency=1, stop_on_error=False))
    run.ends("g", "a", outcome="fail")
    run.ends("g", "c")

    assert run.phases("b") == ["aborted"]
    assert run.outcome.status == "fail"


def test_data_maps_every_node_to_its_outcome() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    run.ends("g", "a", outcome=Outcome(status="pass", data=1))
    run.ends("g", "b", outcome=Outcome(status="fail", late=True))

    assert run.outcome.data == {
        "a": {"status": "pass", "data": 1},
        "b": {"status": "fail", "late": True},
    }
    assert run.outcome.late


def test_an_error_no_second_try_mends_becomes_the_graphs() -> None:
    run = Puppet(graph(node("a"), node("b"), stop_on_error=False))
    run.ends("g", "a", outcome=failing(LoopError("ENGINE", "later")))
    run.ends("g", "b", outcome=failing(LoopError("CONFIG", "never")))

    assert run.outcome.error is not None
    assert run.outcome.error["message"] == "never"


def test_a_step_out_of_rounds_is_named_with_its_reason() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    run.ends("g", "a", outcome=Outcome(status="exhausted", summary="3 rounds, still red"))

    assert run.outcome.summary == (
        "2 required steps did not complete; a ran out of rounds: 3 rounds, still red"
    )


def test_an_unmet_when_skips_and_lets_dependents_run() -> None:
    run = Puppet(graph(node("a"), node("b", "a", when=failed("a").shape), node("c", "b")))
    run.ends("g", "a")

    assert run.phases("b") == ["skip"]
    skip = next(event for event in run.kinds(EventKind.NODE) if event.fields["phase"] == "skip")
    assert skip.fields["outcome"] == {
        "status": "pass",
        "summary": "skipped: a ended pass",
        "data": {"skipped": True},
    }
    assert run.ready() == ["c"]


def test_a_failed_need_chooses_the_branch() -> None:
    run = Puppet(
        graph(
            node("try", optional=True),
            node("mend", "try", when=failed("try").shape),
            node("go", "try", when=passed("try").shape),
        )
    )
    run.ends("g", "try", outcome="exhausted")
    run.ends("g", "mend")

    assert run.phases("go") == ["skip"]
    assert run.outcome.status == "pass"


def test_a_when_is_recorded_before_the_start_it_allows() -> None:
    run = Puppet(graph(node("a"), node("b", "a", when=passed("a").shape)))
    run.ends("g", "a")

    check, start = run.events[-2:]
    assert (check.kind, check.path, check.fields["label"]) == (
        "condition:result",
        ("g", "b"),
        "when",
    )
    assert check.fields["result"] == {"met": True, "reason": "a ended pass"}
    assert start.fields["phase"] == "start"


def test_a_when_about_what_is_no_need_fails_its_node_and_stops_the_graph() -> None:
    wrong = {"op": "not", "parts": [passed("x").shape]}
    run = Puppet(graph(node("a", when=wrong), node("b")))

    assert run.phases("a") == ["fail"]
    assert run.phases("b") == ["aborted"]
    assert [event.fields["code"] for event in run.kinds(EventKind.ERROR)] == ["VALIDATION"]


def test_a_when_written_as_code_takes_a_slot_and_says_why_it_skips() -> None:
    run = Puppet(graph(node("a", when=CODE), node("b"), concurrency=1))

    assert run.due == {("when", ("g", "a")): 1}
    run.checks("g", "a", met=False)
    assert run.state.scopes["g",].nodes["a"].outcome == Outcome(
        status="pass", summary="skipped: because", data={"skipped": True}
    )
    assert run.ready() == ["b"]


def test_another_check_with_the_same_label_changes_nothing() -> None:
    run = Puppet(graph(node("a")))
    before = run.state.scopes
    result = {"met": True, "reason": ""}
    run.append(EventKind.CONDITION, ("g", "a"), label="when", iteration=0, result=result)

    assert run.state.scopes == before


def test_a_graph_is_a_node_like_any_other() -> None:
    inner = graph(node("x"), node("y", "x"), name="in")
    run = Puppet(graph(node("a", job=inner), node("b", "a")))
    run.ends("g", "a", "in", "x")
    run.ends("g", "a", "in", "y", outcome="fail")

    assert run.phases("a") == ["start", "fail"]
    assert run.phases("b") == ["aborted"]
    assert [event.path for event in run.kinds(EventKind.GRAPH_END)] == [("g", "a", "in"), ("g",)]
    assert [event.fields["depth"] for event in run.kinds(EventKind.GRAPH_START)] == [1, 2]


def test_node_events_carry_what_the_author_said() -> None:
    shape = graph(node("a", desc="d", gate="q", timeout_ms=7), node("b", "a"))
    run = Puppet(shape)
    run.ends("g", "a")
    start, done, after = run.kinds(EventKind.NODE)[:3]
    said: dict[str, Any] = {"node": "a", "attempt": 1, "desc": "d", "gate": "q"}

    assert start.fields == {**said, "phase": "start", "timeoutMs": 7}
    assert done.fields == {
        **said,
        "phase": "done",
        "durationMs": 10,
        "outcome": {"status": "pass"},
    }
    assert after.fields == {"node": "b", "phase": "start", "attempt": 1, "needs": ["a"]}


def test_a_node_that_never_started_has_no_duration() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    run.ends("g", "a", outcome="fail")
    done = run.kinds(EventKind.NODE)[-1]

    assert done.fields["node"] == "b"
    assert "durationMs" not in done.fields


def test_a_lost_step_that_may_repeat_is_handed_out_again() -> None:
    run = Puppet(graph(node("a", retry_safe=True)))
    run.loses("job", "g", "a")

    assert run.due == {("job", ("g", "a")): 2}
    run.ends("g", "a")
    assert run.outcome.status == "pass"
    assert run.phases("a") == ["start", "pass"]


@pytest.mark.parametrize(
    ("action", "status"), [("finished", "pass"), ("fail", "fail"), ("run-again", None)]
)
def test_a_lost_step_that_may_not_repeat_is_put_to_a_person(
    action: str, status: str | None
) -> None:
    run = Puppet(graph(node("a")))
    run.loses("job", "g", "a")
    (question,) = run.pending
    assert question.startswith("reconcile:g/a#")
    assert run.phases("a") == ["start", "paused"]
    run.answers({"action": action, "data": 5})

    if status is None:
        assert run.due == {("job", ("g", "a")): 2}
    else:
        assert run.outcome.status == status
        data = run.node("g", "a").outcome.data
        assert data == (5 if status == "pass" else None)


def test_a_held_run_does_nothing_until_it_is_resumed() -> None:
    run = Puppet(graph(node("a"), node("b", "a")))
    run.append(EventKind.RUN_HELD, (), reason="changed")
    run.ends("g", "a")
    assert run.ready() == []

    run.append(EventKind.RUN_RESUMED, ())
    run.settle()
    assert run.ready() == ["b"]
