"""What one worker can carry: deep nests, long loops, many who wait."""

from __future__ import annotations

from typing import Any

import pytest

from runs import body_passed, never
from runs.models import Attempt, Run
from runs.shapes.approval import approval
from runs.shapes.dag import pipeline
from runs.shapes.loop import loop
from runs.shapes.steps import fn_job
from tests import flows
from tests.runs.scenarios import ok

# Committed for real: inside a test's own transaction nothing is remembered between two turns.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def deep(levels: int) -> Any:
    """Loops and graphs in turn, each around the next."""
    job: Any = ok("do")
    for level in range(levels):
        inner = pipeline(f"g{level}", [{"name": "in", "job": job}, {"name": "out", "job": ok("o")}])
        job = loop(f"l{level}", inner, max=1) if level % 2 else inner
    return job


def test_a_nest_six_deep_ends_on_one_worker() -> None:
    run = flows.ran(deep(6))
    assert run.status == "passed"
    assert (run.done_count, run.total_count) == (7, 7)


def test_a_body_that_is_a_graph_has_a_beginning_and_an_end() -> None:
    body = pipeline("work", [{"name": "a", "job": ok("a")}])
    run = flows.ran(pipeline("p", [{"name": "draft", "job": loop("l", body, review=ok("check"))}]))
    rows = {tuple(step.path): step for step in run.steps.all()}
    for path in (
        ("p", "draft", "l"),
        ("p", "draft", "l", "review"),
        ("p", "draft", "l", "work", "a"),
    ):
        assert rows[path].started_at is not None, path
        assert rows[path].ended_at is not None, path
        assert rows[path].status == "passed"


def test_a_loop_of_five_hundred_rounds_ends_on_one_worker() -> None:
    job = loop("l", fn_job("count", lambda ctx: None), until=never, max=500)
    run = flows.start(job)
    flows.work(run, limit=501)
    run = flows.fresh(run)
    assert run.status == "exhausted"
    assert len(flows.events(run, "loop:iteration")) == 500
    # Composites are never handed out: each round cost one attempt.
    assert Attempt.objects.filter(run=run).count() == 500


def test_many_who_wait_leave_a_new_run_unhindered() -> None:
    question = pipeline("asks", [{"name": "ok", "job": approval("ok", "Well?")}])
    flows.offer(question)
    for _ in range(500):
        flows.start(question)
    assert Run.objects.filter(status="waiting").count() == 500
    # Nothing of theirs stands in a worker's way.
    assert flows.ready() == []
    assert flows.ran(loop("l", ok("a"), until=body_passed())).status == "passed"
