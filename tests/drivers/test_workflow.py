"""Workflows in one process: stages and the rounds of their reviews."""

from __future__ import annotations

from typing import Any

import pytest

from runs import (
    EngineError,
    dag,
    exit_code_for,
    fn_job,
    kickback,
    loop,
    run,
    stage,
    workflow,
)
from tests.shapes.team import Team, decision, ends, go, of_stage

# --- rounds ---------------------------------------------------------------------------------------


def test_w67_three_forms_of_one_intent_come_to_the_same(team: Team) -> None:
    found = {"evidence": "beta-1 finding 3", "severity": "block"}
    reviewed = go(team, team.reviewed(team.reviewer("beta-1"), refine=2))
    assert (exit_code_for(reviewed.outcome), team.count("alpha-1"), team.count("beta-1")) == (
        1,
        3,
        3,
    )
    last = of_stage(reviewed)["revision"]["findings"]
    assert [{key: one[key] for key in found} for one in last] == [found]

    builds: list[int] = []

    def refuse(_ctx: Any) -> Any:
        return kickback("write", "no", findings=[{"evidence": f"finding {len(builds)}"}])

    body = fn_job("write", lambda _ctx: builds.append(1))
    nodes = {
        "write": body,
        "review": {
            "job": fn_job("review", refuse),
            "needs": "write",
            "accepts_kickback_to": ["write"],
        },
    }
    graph = run(dag("g", nodes, max_kickbacks={"write": 2}))
    assert (exit_code_for(graph.outcome), len(builds)) == (1, 3)
    builds.clear()
    rounds = run(loop("l", body, review=fn_job("review", refuse), max=3))
    assert (exit_code_for(rounds.outcome), len(builds)) == (1, 3)
    assert rounds.outcome.revision is not None
    assert rounds.outcome.revision.findings[0].evidence == "finding 3"


def test_w67_refine_0_is_one_build_and_one_review(team: Team) -> None:
    result = go(team, team.reviewed(team.reviewer("beta-1"), refine=0))

    assert (ends(result), team.count("alpha-1"), team.count("beta-1")) == (
        {"write": "fail"},
        1,
        1,
    )
    assert "write ran out of rounds" in str(result.outcome.summary)


def test_w74_the_writer_is_given_the_findings_and_w73_a_pass_ends_the_stage(team: Team) -> None:
    result = go(team, team.reviewed(team.reviewer("beta-1", 2), refine=5))

    assert (result.outcome.status, team.count("alpha-1"), team.count("beta-1")) == ("pass", 2, 2)
    first, second = (request.prompt for request in team.calls["alpha-1"])
    assert "Write a draft." in first
    assert "not accepted" not in first
    assert '"beta-1 finding 1"' in second


@pytest.mark.parametrize(("agree", "status"), [(None, "fail"), (2, "pass"), (3, "fail")])
def test_w41_agree_is_how_many_must_accept(team: Team, agree: int | None, status: str) -> None:
    reviewers = [team.reviewer("beta-1", 1), team.reviewer("gamma-1", 1), team.reviewer("delta-1")]

    result = go(team, team.reviewed(*reviewers, agree=agree, refine=0))

    assert result.outcome.status == status
    assert team.count("delta-1") == 1


def test_w75_a_writer_that_leaves_its_files_as_they_were_fails_at_once(team: Team) -> None:
    def write(call: int, _request: Any) -> str:
        (team.folder / "draft.md").write_text("always the same")
        (team.folder / "scratch.txt").write_text(str(call))
        return decision("pass", "written")

    team_job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.seat("alpha-1", write), "r": [team.reviewer("beta-1")]},
        stages=[stage("write", agent="w", writes=["draft.md"], reviewed_by="r", refine=9)],
    )
    result = go(team, team_job)

    assert (team.count("alpha-1"), team.count("beta-1")) == (2, 1)
    assert of_stage(result)["error"]["code"] == "VALIDATION"
    assert "unchanged after feedback" in of_stage(result)["summary"]


def test_w77_swapping_the_contents_of_two_files_is_a_change(team: Team) -> None:
    def write(call: int, _request: Any) -> str:
        names = ("a.md", "b.md") if call % 2 else ("b.md", "a.md")
        for name, text in zip(names, ("one", "two"), strict=True):
            (team.folder / name).write_text(text)
        return decision("pass", "written")

    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.seat("alpha-1", write), "r": [team.reviewer("beta-1", 2)]},
        stages=[stage("write", agent="w", writes=["a.md", "b.md"], reviewed_by="r")],
    )

    assert go(team, job).outcome.passed


def test_w27_a_round_without_a_declared_file_goes_back_and_no_reviewer_sees_it(team: Team) -> None:
    def write(call: int, _request: Any) -> str:
        if call > 1:
            (team.folder / "draft.md").write_text("there")
        return decision("pass", "written")

    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.seat("alpha-1", write), "r": [team.reviewer("beta-1", 1)]},
        stages=[stage("write", agent="w", writes=["draft.md"], reviewed_by="r", refine=1)],
    )
    result = go(team, job)

    assert (result.outcome.status, team.count("beta-1")) == ("pass", 1)
    assert "draft.md is missing or empty" in team.calls["alpha-1"][1].prompt


def test_w27_a_file_that_never_comes_fails_the_stage_by_its_name(team: Team) -> None:
    (team.folder / "draft.md").write_text("")
    lazy = team.seat("alpha-1", lambda *_: decision("pass", "written"))

    def job(**more: Any) -> Any:
        return workflow(
            "team",
            brief="Write.",
            roles={"w": lazy, "r": [team.reviewer("beta-1", 1)]},
            stages=[stage("write", agent="w", writes=["draft.md"], **more)],
        )

    result = go(team, job(reviewed_by="r", refine=2))
    assert (team.count("alpha-1"), team.count("beta-1")) == (3, 0)
    assert of_stage(result)["status"] == "fail"
    assert "draft.md" in of_stage(result)["summary"]

    # Without a review it fails at once (W26).
    alone = go(team, job())
    assert team.count("alpha-1") == 4
    assert of_stage(alone)["summary"] == "write did not write draft.md."


def test_a_writer_that_gives_up_or_breaks_ends_its_stage(team: Team) -> None:
    def broken(*_: Any) -> str:
        raise EngineError("transient", "away")

    for model, says in (
        ("alpha-1", lambda *_: decision("revise", "cannot be done", "the brief is odd")),
        ("alpha-2", broken),
        ("alpha-3", lambda *_: "no decision at all"),
    ):
        job = workflow(
            "team",
            brief="Write.",
            roles={"w": team.seat(model, says), "r": [team.reviewer("beta-1", 1)]},
            stages=[stage("write", agent="w", writes=["draft.md"], reviewed_by="r", refine=5)],
        )
        result = go(team, job)
        assert (result.outcome.status, team.count(model)) == ("fail", 1)
    assert team.count("beta-1") == 0


def test_w84_a_reviewer_without_a_decision_is_asked_once_more(team: Team) -> None:
    def once(call: int, _request: Any) -> str:
        return "well" if call == 1 else decision("pass", "good")

    result = go(team, team.reviewed(team.seat("beta-1", once)))
    assert (result.outcome.status, team.count("beta-1")) == ("pass", 2)
    assert "could not be used" in team.calls["beta-1"][1].prompt

    never = Team(team.folder)
    result = go(never, never.reviewed(never.seat("beta-1", lambda *_: "well"), refine=5))
    # It is no rejection: nothing is built again for it.
    assert (result.outcome.status, never.count("alpha-1"), never.count("beta-1")) == (
        "paused",
        1,
        2,
    )
