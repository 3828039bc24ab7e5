"""A panel of reviewers that are functions, commands or conditions (workflows.md W90-W103)."""

from __future__ import annotations

from typing import Any

import pytest

from runs import (
    LoopError,
    Outcome,
    fn_job,
    job_meta,
    loop,
    pipeline,
    predicate,
    render_plan,
    review_panel,
    revision_request,
    run,
)
from runs.kernel.errors import DeclarationError


def says(name: str, outcome: Any) -> dict[str, Any]:
    def body(ctx: Any) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return {"name": name, "job": fn_job(name, body)}


YES = Outcome(status="pass", summary="fine", confidence=0.75)
NO = revision_request(reason="broken", findings=[{"evidence": "line 3"}], confidence=0.25)
AWAY = LoopError("ENGINE", "the engine is away")


def panel(*reviews: Any, **options: Any) -> Any:
    named = [says(f"r{position}", review) for position, review in enumerate(reviews)]
    return run(review_panel(label="review", reviewers=named, **options)).outcome


@pytest.mark.parametrize(
    "given",
    [
        {"reviewers": []},
        {"reviewers": [{"name": "a"}]},
        {"reviewers": [{"name": "a", "job": print, "review": print}]},
        {"reviewers": [{"name": "a", "job": print, "seat": 1}]},
        {"reviewers": [{"name": "a", "job": print}] * 2},
        {"reviewers": [print], "pass_": 2},
        {"reviewers": [print], "pass_": 0},
        {"reviewers": [print], "pass_": "some"},
        {"reviewers": [print], "concurrency": 0},
        {"reviewers": [print], "label": ""},
    ],
)
def test_what_cannot_be_a_panel_is_refused_w91(given: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        review_panel(**given)


@pytest.mark.parametrize(
    ("reviews", "pass_", "status"),
    [
        ((YES, YES), "all", "pass"),
        ((YES, NO), "all", "fail"),
        ((YES, YES, NO), 2, "pass"),
        ((YES, NO, NO), 2, "fail"),
        ((YES, AWAY), "all", "paused"),
        ((YES, NO, AWAY), "all", "paused"),
        ((YES, NO, AWAY), 2, "paused"),
        ((NO, NO, AWAY), 2, "fail"),
        ((YES, YES, AWAY), 2, "pass"),
        ((AWAY, AWAY), 1, "paused"),
        ((YES, LoopError("CONFIG", "no such engine")), "all", "paused"),
        ((YES, ValueError("broken")), "all", "fail"),
        ((YES, YES, LoopError("WRITE_BOUNDARY", "it wrote")), 2, "paused"),
    ],
)
def test_how_many_must_agree_w93_w97(reviews: Any, pass_: Any, status: str) -> None:
    assert panel(*reviews, pass_=pass_).status == status


def test_a_failing_panel_sends_back_with_every_finding_w97_w98() -> None:
    refuses = Outcome(status="fail", summary="too slow")
    made = panel(YES, NO, refuses, target="implement")
    assert made.revision is not None
    assert made.revision.target == "implement"
    assert made.revision.reason == "1 of 3 reviewers agree, 3 needed"
    assert made.summary == "1 of 3 reviewers agree, 3 needed\nr1: line 3\nr2: too slow"
    found = [(one.reviewer, one.evidence, one.severity) for one in made.revision.findings]
    assert found == [("r1", "line 3", "block"), ("r2", "too slow", "block")]
    assert made.data["severities"] == {"block": 2}
    assert [one["met"] for one in made.data["results"]] == [True, False, False]


def test_confidence_is_the_mean_of_what_was_said_w100() -> None:
    assert panel(YES, NO, Outcome(status="pass"), pass_=2).confidence == 0.5
    assert panel(Outcome(status="pass")).confidence is None


def test_a_finding_out_of_scope_is_escalated_w96_w99() -> None:
    aside = revision_request(reason="x", findings=[{"evidence": "the logo", "scope": "looks"}])
    made = panel(aside, actionable_scopes=["safety"])
    assert made.status == "pass"
    assert [one["decision"] for one in made.data["escalated"]] == ["escalated"]
    assert panel(aside, actionable_scopes=["looks"]).status == "fail"


def test_a_pass_without_everybody_says_so_w103() -> None:
    made = panel(YES, AWAY, pass_=1)
    assert made.status == "pass"
    assert (made.data["degraded"], made.data["missing"]) == (True, ["r1"])


def test_a_panel_that_pauses_says_so_once() -> None:
    reviewers = [says("a", YES), says("b", AWAY)]
    stages = [{"name": "review", "job": review_panel(label="panel", reviewers=reviewers)}]
    made = run(pipeline("p", stages))
    assert made.outcome.status == "paused"
    ends = [event.path for event in made.events if event.kind == "dag:end"]
    assert ends == [("p", "review", "panel"), ("p",)]


def test_a_condition_may_review_w90() -> None:
    good = predicate(lambda ctx, last: False, "not signed")
    made: Any = run(review_panel(reviewers=[{"review": good}, says("b", YES)["job"]])).outcome
    assert made.status == "fail"
    assert [one["reviewer"] for one in made.data["findings"]] == ["reviewer-0"]


def test_a_failing_panel_returns_the_work_to_its_target() -> None:
    built: list[str | None] = []

    def implement(ctx: Any) -> None:
        built.append(ctx.last_review and ctx.last_review.revision.findings[0].evidence)

    def check(ctx: Any) -> Any:
        return (
            "good"
            if len(built) > 1
            else revision_request(reason="x", findings=[{"evidence": "no test"}])
        )

    reviewers = [
        {"name": "a", "job": fn_job("a", check)},
        {"name": "b", "job": fn_job("b", lambda c: None)},
    ]
    review = review_panel(label="review", reviewers=reviewers, pass_=2, target="implement")
    stages = [
        {"name": "implement", "job": fn_job("implement", implement)},
        {"name": "review", "job": review, "accepts_kickback_to": ["implement"]},
    ]
    assert run(pipeline("p", stages, max_kickbacks=2)).outcome.status == "pass"
    assert built == [None, "no test"]


def test_a_panel_reviews_a_loop() -> None:
    def check(ctx: Any) -> Any:
        return "good" if ctx.iteration > 1 else revision_request(reason="again")

    review = review_panel(reviewers=[fn_job("a", check), fn_job("b", check)])
    made = run(loop("l", fn_job("w", lambda ctx: None), review=review, max=3))
    assert made.outcome.status == "pass"


def test_what_a_panel_declares() -> None:
    job = review_panel(
        label="review", reviewers=[says("a", YES), says("b", YES)], pass_=1, target="x"
    )
    meta = job_meta(job)
    assert meta is not None
    assert (meta["kind"], meta["pass"], meta["target"]) == ("reviewPanel", 1, "x")
    assert render_plan(meta) == [
        "review panel review (1 of 2 agree, sends back to x)",
        "  a",
        "    fn a",
        "  b",
        "    fn b",
    ]
