from __future__ import annotations

from typing import Any

import pytest

from runs.kernel.events import EventKind
from runs.kernel.outcomes import Finding, Outcome, kickback, revision_request
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import ask, graph, node


def abc(**more: Any) -> Puppet:
    nodes = [node("a"), node("b", "a"), node("c", "b", accepts_kickback_to=("a",))]
    return Puppet(graph(*nodes, **more))


def round_of(run: Puppet, *names: str) -> None:
    for name in names:
        run.ends("g", name)


def answers(run: Puppet) -> list[tuple[bool, int, Any]]:
    return [
        (event.fields["accepted"], event.fields["count"], event.fields.get("limit"))
        for event in run.kinds(EventKind.SEND_BACK)
    ]


def test_an_accepted_send_back_runs_the_target_and_all_that_depends_on_it() -> None:
    run = abc(max_kickbacks=2)
    round_of(run, "a", "b")
    run.ends("g", "c", outcome=kickback("a", "too short"))

    assert answers(run) == [(True, 1, 2)]
    assert run.ready() == ["a"]
    assert {name: run.node("g", name).attempt for name in "abc"} == {"a": 2, "b": 2, "c": 2}
    round_of(run, "a", "b", "c")
    assert run.outcome.status == "pass"


def test_the_target_reads_the_review_once() -> None:
    found = Finding(evidence="line 3", severity="should-fix")
    run = abc(max_kickbacks=2)
    round_of(run, "a", "b")
    run.ends("g", "c", outcome=revision_request("a", "too short", findings=[found]))
    review = run.node("g", "a").last_review

    assert review.status == "fail"
    assert review.summary == "c sent this back: too short"
    assert (review.revision.source, review.revision.findings) == ("c", (found,))
    assert run.node("g", "b").last_review is None
    run.ends("g", "a")
    assert run.node("g", "a").last_review is None


def test_a_step_that_was_cut_short_has_not_answered_its_review() -> None:
    run = abc(max_kickbacks=2)
    round_of(run, "a", "b")
    run.ends("g", "c", outcome=kickback("a", "x"))
    run.ends("g", "a", outcome="aborted")

    assert run.node("g", "a").last_review is not None


def test_over_the_limit_the_senders_fail_stands() -> None:
    run = abc(max_kickbacks=2)
    for _ in range(3):
        round_of(run, "a", "b")
        run.ends("g", "c", outcome=kickback("a", "no"))

    assert answers(run) == [(True, 1, 2), (True, 2, 2), (False, 3, 2)]
    assert run.outcome.status == "fail"
    assert run.node("g", "c").outcome.revision.reason == "no"
    assert run.phases("c").count("fail") == 3


@pytest.mark.parametrize("limit", [None, 0, {}, {"b": 1}])
def test_without_a_budget_a_declared_send_back_leaves_no_event(limit: Any) -> None:
    run = abc(max_kickbacks=limit)
    round_of(run, "a", "b")
    run.ends("g", "c", outcome=kickback("a", "no"))

    assert run.kinds(EventKind.SEND_BACK) == []
    assert run.outcome.status == "fail"


@pytest.mark.parametrize("limit", [None, 0, 5])
@pytest.mark.parametrize("target", ["b", "nowhere"])
def test_an_undeclared_target_fails_the_sender_and_names_both(limit: Any, target: str) -> None:
    run = abc(max_kickbacks=limit)
    round_of(run, "a", "b")
    run.ends("g", "c", outcome=kickback(target, "no"))

    assert answers(run) == [(False, 1, None)]
    error = run.node("g", "c").outcome.error
    assert error["code"] == "CONFIG"
    assert "c" in error["message"]
    assert target in error["message"]
    assert run.outcome.error == error


def test_an_undeclared_send_back_stops_the_graph_like_any_failure() -> None:
    run = Puppet(graph(node("a"), node("b"), node("c"), concurrency=1, max_kickbacks=3))
    run.ends("g", "a", outcome=kickback("b", "no"))

    assert run.phases("b") == ["aborted"]


@pytest.mark.parametrize("more", [{"status": "pass"}, {"status": "exhausted"}])
def test_the_senders_status_does_not_matter(more: dict[str, Any]) -> None:
    run = abc(max_kickbacks=1)
    round_of(run, "a", "b")
    run.ends("g", "c", outcome=kickback("a", "again", **more))

    assert answers(run) == [(True, 1, 1)]


def test_an_optional_sender_is_heard_too() -> None:
    shape = graph(
        node("a"),
        node("b", "a", optional=True, accepts_kickback_to=("a",)),
        max_kickbacks=1,
    )
    run = Puppet(shape)
    run.ends("g", "a")
    run.ends("g", "b", outcome=kickback("a", "again"))

    assert run.ready() == ["a"]


def test_requests_wait_until_the_wave_has_ended() -> None:
    shape = graph(
        node("a"),
        node("b", "a", accepts_kickback_to=("a",)),
        node("slow"),
        node("late"),
        concurrency=2,
        max_kickbacks=1,
    )
    run = Puppet(shape)
    run.ends("g", "a")
    run.ends("g", "b", outcome=kickback("a", "again"))

    assert run.kinds(EventKind.SEND_BACK) == []
    assert run.ready() == ["late", "slow"]
    run.ends("g", "late")
    run.ends("g", "slow")
    assert answers(run) == [(True, 1, 1)]


def two_pairs(limit: Any) -> Puppet:
    shape = graph(
        node("a"),
        node("ra", "a", accepts_kickback_to=("a",)),
        node("b"),
        node("rb", "b", accepts_kickback_to=("b",)),
        max_kickbacks=limit,
        stop_on_error=False,
    )
    run = Puppet(shape)
    while run.due:
        _, path = next(iter(run.due))
        name = path[-1]
        back = {"ra": kickback("a", "no"), "rb": kickback("b", "no")}
        sends = name == "ra" or (name == "rb" and run.node("g", "rb").attempt < 3)
        run.ends(*path, outcome=back[name] if sends else "pass")
    return run


def test_a_mapping_gives_every_target_its_own_number() -> None:
    run = two_pairs({"a": 1, "b": 2})

    assert run.node("g", "a").attempt == 2
    assert run.node("g", "b").attempt == 3
    assert run.node("g", "rb").outcome.status == "pass"


def test_over_a_number_all_handling_ends() -> None:
    run = two_pairs(1)

    assert run.node("g", "a").attempt == 2
    assert run.node("g", "b").attempt == 1
    assert run.node("g", "rb").outcome.status == "fail"


def test_a_second_sender_is_heard_on_its_new_result() -> None:
    shape = graph(
        node("a"),
        node("x", "a", accepts_kickback_to=("a",)),
        node("y", "a", accepts_kickback_to=("a",)),
        max_kickbacks=5,
    )
    run = Puppet(shape)
    run.ends("g", "a")
    run.ends("g", "y", outcome=kickback("a", "from y"))
    run.ends("g", "x", outcome=kickback("a", "from x"))

    assert [event.fields["from"] for event in run.kinds(EventKind.SEND_BACK)] == ["x"]
    round_of(run, "a", "x", "y")
    assert run.outcome.status == "pass"
    assert len(run.kinds(EventKind.SEND_BACK)) == 1


def test_nothing_but_the_target_and_its_dependents_runs_again() -> None:
    shape = graph(
        node("before"),
        node("a", "before"),
        node("b", "a", accepts_kickback_to=("a",)),
        node("aside", "before"),
        node("after", "b"),
        max_kickbacks=1,
    )
    run = Puppet(shape)
    round_of(run, "before", "a", "aside")
    run.ends("g", "b", outcome=kickback("a", "again"))

    attempts = {name: state.attempt for name, state in run.state.scopes["g",].nodes.items()}
    # `after` has not run yet: its first attempt is still to come.
    assert attempts == {"before": 1, "a": 2, "b": 2, "aside": 1, "after": 1}


def test_a_graph_that_runs_again_starts_with_fresh_attempts_and_counts() -> None:
    inner = graph(node("x"), node("y", "x", accepts_kickback_to=("x",)), name="in", max_kickbacks=1)
    shape = graph(node("a", job=inner), node("b", "a", accepts_kickback_to=("a",)), max_kickbacks=1)
    run = Puppet(shape)
    for _ in range(2):
        run.ends("g", "a", "in", "x")
        run.ends("g", "a", "in", "y", outcome=kickback("x", "again"))
        run.ends("g", "a", "in", "x")
        assert run.node("g", "a", "in", "x").attempt == 2
        run.ends("g", "a", "in", "y")
        run.ends("g", "b", outcome=kickback("a", "all of it"))

    assert [accepted for accepted, _, _ in answers(run)] == [True, True, True, False]


def test_a_person_sends_back_with_the_note_as_finding() -> None:
    shape = graph(
        node("a"), node("ok", "a", job=ask(target="a"), accepts_kickback_to=("a",)), max_kickbacks=1
    )
    run = Puppet(shape)
    run.ends("g", "a", outcome=Outcome(status="pass", summary="v1"))
    run.answers({"approved": False, "note": "no header row"})

    review = run.node("g", "a").last_review
    assert review.revision.findings == (Finding(evidence="no header row"),)
    assert run.ready() == ["a"]
    run.ends("g", "a", outcome=Outcome(status="pass", summary="v2"))
    run.answers({"approved": True})
    assert run.outcome.status == "pass"
