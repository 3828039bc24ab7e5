"""A panel in the service: what paused for want of a verdict is asked again."""

from __future__ import annotations

from typing import Any

import pytest

from runs import LoopError, fn_job, pipeline, review_panel, services
from tests import flows
from tests.runs.scenarios import ok

pytestmark = pytest.mark.django_db


def test_a_panel_without_a_verdict_pauses_and_resuming_asks_those_again() -> None:
    tries: list[str] = []

    def away(ctx: Any) -> str:
        tries.append("away")
        if len(tries) == 1:
            raise LoopError("ENGINE", "the engine is away")
        return "fine"

    reviewers = [{"name": "a", "job": ok("a")}, {"name": "b", "job": fn_job("b", away)}]
    stages = [{"name": "review", "job": review_panel(label="r", reviewers=reviewers)}]
    run = flows.ran(pipeline("p", [*stages, {"name": "ship", "job": ok("ship")}]))
    assert (run.status, run.display_status) == ("paused", "paused")

    services.resume_run(run.pk, actor="user:9")
    flows.work(run)

    assert flows.fresh(run).status == "passed"
    assert [event.path[-1] for event in flows.events(run, "job:start")] == ["a", "b", "b", "ship"]
