"""What the seats of a workflow may touch, whom they may judge, and what they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs import (
    Outcome,
    dag,
    exit_code_for,
    fn_job,
    stage,
    workflow,
)
from tests.shapes.team import Team, decision, go, of_stage

# --- boundaries -----------------------------------------------------------------------------------


def test_w44_a_stage_that_touches_another_stages_file_fails(team: Team) -> None:
    for touch, change in (
        ("import os; os.remove('draft.md')", "removed"),
        ("open('draft.md', 'w').write('mine')", "changed"),
    ):
        job = workflow(
            "team",
            brief="Write.",
            roles={"w": team.writer()},
            stages=[
                stage("write", agent="w", writes=["draft.md"]),
                stage("test", run=["python3", "-c", touch]),
            ],
        )
        told = of_stage(go(team, job), "test")
        assert (told["error"]["code"], told["error"]["phase"]) == ("WRITE_BOUNDARY", "body")
        assert (
            f"test touched declared files that are not its own: draft.md ({change})"
            in (told["summary"])
        )


def test_w48_a_link_that_leads_out_is_a_breach(team: Team, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.write_text("x")

    def link(_ctx: Any) -> None:
        (team.folder / "draft.md").unlink()
        (team.folder / "draft.md").symlink_to(outside)

    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer()},
        stages=[
            stage("write", agent="w", writes=["draft.md"]),
            stage("link", fn=link),
        ],
    )

    assert of_stage(go(team, job), "link")["error"]["code"] == "WRITE_BOUNDARY"


def test_w45_a_reviewer_that_edits_the_work_pauses_the_stage_whatever_the_votes(
    team: Team,
) -> None:
    def edits(_call: int, _request: Any) -> str:
        (team.folder / "draft.md").write_text("better")
        return decision("pass", "I made it good")

    reviewers = [
        team.reviewer("beta-1", 1),
        team.reviewer("gamma-1", 1),
        team.seat("delta-1", edits, tools=("Read", "Bash")),
    ]
    result = go(team, team.reviewed(*reviewers, agree=2))

    assert (result.outcome.status, exit_code_for(result.outcome)) == ("paused", 75)
    ended = [e for e in result.events if e.kind == "dag:end" and e.path[-1] == "review"]
    assert ended[0].fields["outcome"]["error"]["code"] == "WRITE_BOUNDARY"


# --- families -------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["beta-2", "gpt 5.4", "/", "unknown", "unknown-1"])
def test_w187_a_writer_that_answers_as_its_reviewers_family_is_refused_unseen(
    team: Team, model: str
) -> None:
    def write(_call: int, _request: Any) -> dict[str, Any]:
        (team.folder / "draft.md").write_text("x")
        return {"text": decision("pass", "written"), "model": model}

    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.seat("alpha-1", write), "r": [team.reviewer("beta-1", 1)]},
        stages=[stage("write", agent="w", writes=["draft.md"], reviewed_by="r", refine=5)],
    )
    result = go(team, job)

    assert (result.outcome.status, team.count("alpha-1"), team.count("beta-1")) == ("fail", 1, 0)
    error = of_stage(result)["error"]
    assert (error["code"], error["phase"]) == ("BODY", "review")
    assert model in error["message"]


@pytest.mark.parametrize("model", ["alpha-9", "unknown"])
def test_w188_a_reviewer_that_answers_as_the_writers_family_does_not_count(
    team: Team, model: str
) -> None:
    def review(*_: Any) -> dict[str, Any]:
        return {"text": decision("pass", "good"), "model": model}

    result = go(team, team.reviewed(team.seat("beta-1", review), refine=5))

    assert (result.outcome.status, team.count("alpha-1")) == ("fail", 1)
    assert "beta-1" in of_stage(result)["error"]["message"]


def test_w191_a_stage_that_is_taken_over_still_has_its_recorded_family(
    team: Team, tmp_path: Path
) -> None:
    stops = [True]

    def write(_call: int, _request: Any) -> dict[str, Any]:
        (team.folder / "draft.md").write_text("x")
        return {"text": decision("pass", "written"), "model": "beta-2"}

    def hold(_ctx: Any) -> Any:
        return Outcome(status="fail", summary="not yet") if stops else None

    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.seat("alpha-1", write), "r": [team.reviewer("beta-1", 1)]},
        stages=[
            stage("write", agent="w", writes=["draft.md"]),
            stage("hold", fn=hold),
            stage("review", panel="r"),
        ],
    )
    path = tmp_path / "run.jsonl"
    go(team, job, record_to=path)
    stops.clear()
    result = go(team, job, record_to=path, resume=True)

    assert (team.count("alpha-1"), team.count("beta-1")) == (1, 0)
    assert of_stage(result, "review")["error"]["code"] == "BODY"


# --- what each is shown ---------------------------------------------------------------------------


def test_w82_each_seat_is_shown_its_part_of_the_work(team: Team) -> None:
    plan, write = team.writer("alpha-1", "plan.md"), team.writer("alpha-2", "draft.md")
    job = workflow(
        "team",
        brief="The whole brief.",
        roles={"p": plan, "w": write, "r": [team.reviewer("beta-1", 1)]},
        stages=[
            stage("plan", agent="p", writes=["plan.md"], desc="Plan it.", gate="It is short."),
            stage("write", agent="w", writes=["draft.md"], reviewed_by="r", effort="high"),
        ],
        options={"timeout": "1.5m"},
    )
    assert go(team, job).outcome.passed

    first, second = team.calls["alpha-1"][0], team.calls["alpha-2"][0]
    review = team.calls["beta-1"][0]
    for request in (first, second, review):
        assert "The whole brief." in request.prompt
        assert request.timeout_ms == 90_000
    assert "Plan it." in first.prompt
    assert "It is short." in first.prompt
    assert "draft.md" not in first.prompt, "later files are nobody's business"
    assert "plan.md" in second.prompt
    assert (first.effort, second.effort, review.effort) == (None, "high", None)
    assert (second.workspace_mode, review.workspace_mode) == ("write", "read")
    assert (second.model, second.tools, second.allowed_tools) == ("alpha-2", ("Read",), ("Read",))


def test_the_usage_of_seats_carries_role_and_stage(team: Team) -> None:
    result = go(team, team.reviewed(team.reviewer("beta-1", 1)))

    told = [event.fields for event in result.events if event.kind == "engine:usage"]
    assert [(one["role"], one["stage"], one["model"]) for one in told] == [
        ("writer", "write", "alpha-1"),
        ("reviewer", "write", "beta-1"),
    ]


# --- a workflow is a job like any other -----------------------------------------------------------


def test_w10_it_nests_and_w81_a_second_run_starts_clean(team: Team) -> None:
    job = team.reviewed(team.reviewer("beta-1", 2, 4), refine=1)
    outer = dag("outer", {"before": fn_job("before", str), "team": {"job": job, "needs": "before"}})

    for builds in (2, 4):
        assert go(team, outer).outcome.passed
        assert team.count("alpha-1") == builds
