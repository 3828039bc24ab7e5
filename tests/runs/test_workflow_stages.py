"""Stages of a workflow in the service: lost workers, waiting people, changed briefs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs import EngineError, person, services, stage, sweep, workflow
from runs.attempts import worker
from runs.testing import mock_seat
from tests import flows
from tests.runs import team_scenarios as teams
from tests.shapes.team import decision

pytestmark = pytest.mark.django_db(transaction=True)


class Rooms:
    """Which steps were asked, in the workspace of the service."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def reviewed(self, *, passes: int = 1, refine: int = 2, **keys: Any) -> Any:
        write = teams.writer()
        review = teams.reviewer("beta-1", passes)

        def noted(name: str, seat: Any) -> Any:
            def reply(request: Any) -> Any:
                self.asked.append(name)
                return seat.engine._responder(request)

            return mock_seat(seat.identity.model, reply)

        return workflow(
            "team",
            brief=keys.pop("brief", "Write."),
            roles={"w": noted("write", write), "r": [noted("review", review)]},
            stages=[
                stage(
                    "write",
                    agent="w",
                    writes=["draft.md"],
                    reviewed_by="r",
                    refine=refine,
                    **keys,
                )
            ],
        )


def test_a_review_whose_worker_is_lost_is_made_again_and_nothing_else() -> None:
    rooms = Rooms()
    run = flows.start(rooms.reviewed())
    worker.execute(flows.ready(run)[0], onward=0)
    pk = flows.claimed(run)
    assert flows.events(run, "job:start")[-1].fields["label"] == "beta-1"
    sweep.lose(pk, whatever_the_lease=True)
    flows.work(run)

    assert flows.fresh(run).status == "passed"
    assert rooms.asked == ["write", "review"]
    assert flows.kinds(run).count("step:lost") == 1
    assert "callback-requested" not in flows.kinds(run)


@pytest.mark.parametrize("safe", [True, False])
def test_a_build_whose_worker_is_lost_is_asked_about_unless_it_may_run_again(safe: bool) -> None:
    rooms = Rooms()
    run = flows.start(rooms.reviewed(retry_safe=safe))
    sweep.lose(flows.claimed(run), whatever_the_lease=True)
    flows.work(run)

    if not safe:
        assert flows.fresh(run).waiting_on == ["question"]
        flows.answer(run, {"action": "run-again"})
        flows.work(run)
    assert flows.fresh(run).status == "passed"
    assert rooms.asked == ["write", "review"]


def test_a_changed_brief_holds_the_run_it_would_change() -> None:
    rooms = Rooms()
    run = flows.start(rooms.reviewed())
    flows.offer(rooms.reviewed(brief="Write more."), name="team")
    flows.work(run)

    assert rooms.asked == []
    assert "changed since this run started" in flows.fresh(run).held_reason


def test_a_reviewer_out_of_service_pauses_and_is_alone_asked_again() -> None:
    spent, asked = [True], []

    def review(_request: Any) -> str:
        asked.append("gamma")
        if spent:
            raise EngineError("quota", "come back next month")
        return decision("pass", "good")

    def other(_request: Any) -> str:
        asked.append("beta")
        return decision("pass", "good")

    job = workflow(
        "team",
        brief="Write.",
        roles={
            "w": teams.writer(),
            "r": [mock_seat("beta-1", other), mock_seat("gamma-1", review)],
        },
        stages=[stage("write", agent="w", writes=["draft.md"], reviewed_by="r")],
    )
    run = flows.ran(job)
    assert run.status == "paused"
    spent.clear()
    services.resume_run(run.pk, actor=flows.STARTER)
    flows.work(run)

    assert flows.fresh(run).status == "passed"
    assert sorted(asked) == ["beta", "gamma", "gamma"]


def test_a_person_reviews_in_the_inbox_and_the_writer_gets_the_answer() -> None:
    run = flows.ran(teams.by_a_person())
    assert flows.fresh(run).status == "waiting"
    flows.answer(run, teams.NO)
    flows.work(run)
    flows.answer(run, teams.YES)
    flows.work(run)
    flows.answer(run, {"approved": True})
    flows.work(run)

    assert flows.fresh(run).status == "passed"
    assert len(flows.events(run, "loop:iteration")) == 2


def test_a_family_that_reviews_itself_is_refused_in_the_service_too() -> None:
    asked: list[int] = []

    def write(request: Any) -> dict[str, str]:
        (Path(request.cwd) / "draft.md").write_text("x")
        return {"text": decision("pass", "written"), "model": "beta-2"}

    def review(_request: Any) -> str:
        asked.append(1)
        return decision("pass", "good")

    job = workflow(
        "team",
        brief="Write.",
        roles={
            "w": mock_seat("alpha-1", write),
            "r": [mock_seat("beta-1", review)],
            "lead": person("Ship it?"),
        },
        stages=[stage("write", agent="w", writes=["draft.md"], reviewed_by="r")],
    )
    run = flows.ran(job)

    assert (run.status, asked) == ("failed", [])
