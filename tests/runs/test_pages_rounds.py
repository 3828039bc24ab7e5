"""Loops and what runs again, on the page of a run: which round, why, and when the next begins."""

from __future__ import annotations

from typing import Any

import pytest

from runs import (
    Finding,
    LoopError,
    Outcome,
    approval,
    dag,
    fn_job,
    fragments,
    loop,
    predicate,
    revision_request,
)
from runs.kernel.events import Event
from runs.models import Run
from runs.pages import event_lines, rounds, run_graph, step_views
from tests import factories, flows
from tests.pages import Page, client_of, page_of

pytestmark = pytest.mark.django_db

FINDINGS = [
    Finding(evidence="No test for <b>zero</b>.", severity="block", reviewer="ines"),
    Finding(evidence="A name misleads.", severity="should-fix"),
]


def rejects(ctx: Any) -> Outcome:
    return revision_request(reason="Two things are missing", findings=FINDINGS)


def reviewed() -> Run:
    """A feature whose review has rejected once; the next round waits a minute."""
    body = dag("work", {"write": fn_job("write", str), "check": fn_job("check", str)})
    refine = loop("refine", body, review=fn_job("read it", rejects), max=4, delay_ms=60_000)
    return flows.ran(dag("feature", {"refine": {"job": refine}, "ship": fn_job("ship", str)}))


def page_of_run(run: Run) -> Page:
    return page_of(client_of(factories.person("root", perms=["runs.view_run"])).get(
        run.get_absolute_url()
    ))  # fmt: skip


def test_a_loop_says_its_round_why_it_goes_on_and_when() -> None:
    run = reviewed()
    found = rounds.rounds_of_run(run)[("feature", "refine")]

    assert (found.number, found.text, found.short) == (1, "round 1 of 4", "1/4")
    assert found.why == "Two things are missing"
    assert found.findings == [
        "block: No test for <b>zero</b>. (ines)",
        "should-fix: A name misleads.",
    ]
    assert found.resumes_at == run.wake_at is not None

    page = page_of_run(run)
    assert "waits for its time" in page.by_id("run-status").text
    (again,) = page.all(class_="again")
    assert again.text.startswith("Round 1 of 4, because")
    assert "Two things are missing block: No test for <b>zero</b>." in again.text
    assert [one.get("data-time") for one in page.all("time") if one.get("data-time") == "in"] == [
        "in",
        "in",
    ]


def test_a_review_that_rejects_is_no_error_and_leads_back_in_the_graph() -> None:
    run = reviewed()
    views = step_views.step_views(run, run.created_at)
    review = next(view for view in views if view.name == "read it")

    assert (review.status, review.status_word) == ("sent_back", "rejected")
    graph = run_graph.graph_of(run, views)
    assert graph is not None
    ids = {view.name: view.path_id for view in views}
    assert {one["label"].partition(",")[0]: one["parent"] for one in graph["groups"]} == {
        "refine": None,
        "work": ids["refine"],
    }
    assert {one["label"]: one["group"] for one in graph["nodes"]} == {
        "write": ids["work"],
        "check": ids["work"],
        "read it": ids["refine"],
        "ship": None,
    }
    assert {"from": ids["work"], "to": ids["read it"], "kind": "needs", "count": 1} in graph[
        "edges"
    ]


def test_a_loop_that_is_the_whole_run_tells_its_round_in_the_head() -> None:
    job = loop(
        "poll",
        fn_job("ask", str),
        until=predicate(lambda *_: False, "ready"),
        max=3,
        delay_ms=60_000,
    )
    run = flows.ran(job)

    whole = rounds.rounds_of_run(run)[()]
    assert (whole.text, whole.why) == ("round 1 of 3", "its condition was not met: ready")
    assert "round 1 of 3" in page_of_run(run).by_id("run-status").text


def test_a_step_that_was_sent_back_says_why_it_runs_again() -> None:
    job = dag(
        "g",
        {
            "write": approval("write", "Is it written?", per_attempt=True),
            "check": {
                "job": fn_job("check", lambda ctx: revision_request("write", "Too long")),
                "needs": ["write"],
                "accepts_kickback_to": ["write"],
            },
        },
        max_kickbacks=2,
    )
    run = flows.ran(job)
    flows.answer(run, {"approved": True})
    flows.work(run)
    run = flows.fresh(run)

    found = rounds.rounds_of_run(run)[("g", "write")]
    assert (found.text, found.why) == ("round 2", "check: Too long")
    assert "check: Too long" in page_of_run(run).by_id("run-steps").children[0].text


def test_a_step_that_is_tried_again_says_which_attempt_failed_and_when_the_next_begins() -> None:
    def overloaded(ctx: Any) -> str:
        raise LoopError("RATE_LIMIT", "The model is overloaded.", retryable=True)

    retry = {"max_attempts": 5, "base_delay_ms": 60_000, "max_delay_ms": 60_000}
    ask = {"job": fn_job("ask", overloaded), "retry": retry, "retry_safe": True}
    run = flows.ran(dag("g", {"ask": ask, "use": {"job": fn_job("use", str), "needs": ["ask"]}}))

    found = rounds.rounds_of_run(run)[("g", "ask")]
    assert (found.head, found.why) == ("attempt 1 of 5 failed", "The model is overloaded.")
    assert found.resumes_at == run.wake_at is not None
    page = page_of_run(run)
    step = page.by_id("run-steps").children[0]
    assert step.get("data-status") == "retry_pending"
    assert "Attempt 1 of 5 failed" in step.text
    assert "The next attempt begins" in step.text
    assert "Attempt 1 of 5 failed: The model is overloaded." in page.by_id("run-status").text
    assert "goes on by itself" in page.by_id("run-status").text


def test_a_new_round_brings_all_rows_of_the_loop() -> None:
    run = reviewed()
    event = next(one for one in flows.events(run) if one.kind == "loop:iteration")

    frame = Page(fragments.frame(run, [event], {}))

    rows = [one.get("id") for one in frame.all("li", class_="step")]
    assert len(rows) == 5
    (line,) = frame.all("li", class_="event")
    assert line.text.endswith("refine round 1")


def line(kind: str, fields: dict[str, Any]) -> tuple[str, str, str]:
    (view,) = event_lines.event_views([Event(kind, ("g", "n", "l"), fields, seq=1)])
    return view.words, view.text, view.kind_group


REJECTED = {
    "status": "fail",
    "summary": "No.",
    "revision": {"reason": "No.", "findings": [{"evidence": "E", "severity": "block"}] * 2},
}


@pytest.mark.parametrize(
    ("kind", "fields", "told"),
    [
        ("loop:start", {"depth": 1, "max": 3}, ("loop started", "3 rounds at most", "all")),
        ("loop:start", {"depth": 1}, ("loop started", "", "all")),
        ("loop:iteration", {"iteration": 2}, ("round started", "round 2", "all")),
        (
            "loop:condition",
            {"which": "until", "iteration": 1, "result": {"met": False, "reason": "3 fail\nx"}},
            ("condition", "until not met: 3 fail", "output"),
        ),
        (
            "loop:condition",
            {"which": "stopOn", "result": {"met": True, "reason": ""}},
            ("condition", "stop met", "output"),
        ),
        (
            "loop:condition",
            {"which": "until", "result": {"met": False, "reason": "it broke"}, "error": {}},
            ("condition", "until not met: it broke", "output"),
        ),
        (
            "loop:review",
            {"outcome": REJECTED, "accepted": True},
            ("review sent it round again", "No.; 2 findings, first block: E", "all"),
        ),
        (
            "loop:review",
            {"outcome": {"status": "fail", "summary": "Bad"}, "accepted": False},
            ("review rejected", "Bad", "all"),
        ),
        (
            "loop:review",
            {"outcome": {"status": "pass", "summary": "Good"}, "accepted": False},
            ("review passed", "Good", "all"),
        ),
        (
            "loop:stall",
            {"iteration": 4, "report": {"window": 3, "reason": "Nothing changed in 3 rounds."}},
            ("no progress", "Nothing changed in 3 rounds.", "errors"),
        ),
        (
            "loop:wait",
            {"iteration": 1, "waitMs": 90_000, "resumeAt": 1},
            ("pause before the next round", "1 min 30 s", "all"),
        ),
        (
            "loop:end",
            {"outcome": {"status": "pass", "summary": "Done"}, "iterations": 1},
            ("loop passed", "after 1 round: Done", "all"),
        ),
        (
            "run.retry-pending",
            {
                "attempt": 1,
                "maxAttempts": 5,
                "nextAttempt": 2,
                "delayMs": 463,
                "error": {"code": "rate_limited", "message": "Slow down."},
            },
            ("tries again", "attempt 1 of 5 failed: Slow down; next in 463 ms", "errors"),
        ),
        (
            "run.retry-pending",
            {"attempt": 2, "max_attempts": 5, "error": {"code": "timeout"}},
            ("tries again", "attempt 2 of 5 failed: timeout", "errors"),
        ),
        ("run.retry-pending", {}, ("tries again", "", "errors")),
        (
            "limit:wait",
            {"code": "RATE_LIMIT", "waitMs": 5_000, "resumeAt": 5},
            ("limit reached", "RATE_LIMIT; goes on in 5.0 s", "errors"),
        ),
        ("no:such-kind", {"x": 1}, ("no:such-kind", "", "all")),
    ],
)
def test_lines_of_loops_limits_and_retries(
    kind: str, fields: dict[str, Any], told: tuple[str, str, str]
) -> None:
    assert line(kind, fields) == told


def test_a_line_names_the_steps_and_not_every_part_of_the_path() -> None:
    places = {
        ("g", "n"): {"name": "refine", "kind": "loop"},
        ("g", "n", "l"): {"name": "work", "kind": "graph"},
        ("g", "n", "l", "work", "write"): {"name": "write", "kind": "fn"},
    }

    def place(*path: str) -> str:
        return event_lines.event_views([Event("log", path, {"message": "x"}, seq=1)], places)[
            0
        ].path_text

    assert place("g") == ""
    assert place("g", "n") == "refine"
    assert place("g", "n", "l") == "refine"
    assert place("g", "n", "l", "work", "write") == "refine \u203a work \u203a write"
