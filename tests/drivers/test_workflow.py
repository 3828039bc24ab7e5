"""Workflows in one process: stages and the rounds of their reviews."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs import (
    EngineError,
    Outcome,
    dag,
    exit_code_for,
    failed,
    fn_job,
    kickback,
    loop,
    passed,
    person,
    run,
    stage,
    workflow,
)
from runs.drivers.callbacks import create_callback_client, direct_router
from runs.drivers.memory import RunResult
from tests.shapes.team import Team, decision


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)


def go(team: Team, job: Any, **options: Any) -> RunResult:
    return run(job, cwd=team.folder, **options)


def ends(result: RunResult) -> dict[str, str]:
    """How each stage ended."""
    data: Any = result.outcome.data
    return {name: outcome["status"] for name, outcome in data.items()}


def of_stage(result: RunResult, name: str = "write") -> Any:
    data: Any = result.outcome.data
    return data[name]


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


# --- send-backs -----------------------------------------------------------------------------------


def test_w58_a_red_run_goes_back_with_its_output(team: Team) -> None:
    check = "import sys; t = open('draft.md').read(); print(t); sys.exit('draft 1' in t)"
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer()},
        stages=[
            stage("write", agent="w", writes=["draft.md"], refine=1),
            stage("test", run=["python3", "-c", check], sends_back_to="write"),
        ],
    )
    result = go(team, job)

    assert (result.outcome.status, team.count("alpha-1")) == ("pass", 2)
    assert "draft 1" in team.calls["alpha-1"][1].prompt


@pytest.mark.parametrize(("refine", "builds"), [(None, 2), (0, 1), (3, 4)])
def test_w67_send_backs_draw_from_the_refinements_of_their_target(
    team: Team, refine: int | None, builds: int
) -> None:
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer()},
        stages=[
            stage("write", agent="w", writes=["draft.md"], refine=refine),
            stage("test", run="false", sends_back_to="write"),
        ],
    )
    result = go(team, job)

    assert (exit_code_for(result.outcome), team.count("alpha-1")) == (1, builds)


def test_w68_reviews_and_send_backs_draw_from_one_count(team: Team) -> None:
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer(), "r": [team.reviewer("beta-1", 2, 3, 4)]},
        stages=[
            stage("write", agent="w", writes=["draft.md"], reviewed_by="r", refine=2),
            stage("test", run="false", sends_back_to="write"),
        ],
    )
    result = go(team, job)

    # Build 1 is rejected, 2 is sent back, 3 uses the last of the two refinements.
    assert (result.outcome.status, team.count("alpha-1")) == ("fail", 3)
    sent = [event.fields for event in result.events if event.kind == "dag:kickback"]
    assert [(one["accepted"], one["count"], one["limit"]) for one in sent] == [
        (True, 2, 2),
        (False, 3, 2),
    ]


def test_w36_a_function_that_fails_goes_to_its_stages_target(team: Team) -> None:
    calls: list[Any] = []

    def check(ctx: Any) -> Any:
        calls.append(ctx.graph.attempt)
        if len(calls) == 1:
            raise ValueError("not there yet")
        if len(calls) == 2:
            return Outcome(status="fail", summary="still not", confidence=0.2, data={"n": 2})
        return "good"

    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer()},
        stages=[
            stage("write", agent="w", writes=["draft.md"], refine=2),
            stage("check", fn=check, sends_back_to="write"),
        ],
    )
    result = go(team, job)

    assert (result.outcome.status, calls) == ("pass", [1, 2, 3])
    prompts = [request.prompt for request in team.calls["alpha-1"]]
    assert ["not there yet" in prompts[1], "still not" in prompts[2]] == [True, True]


def test_w58_a_send_back_to_another_stage_fails_the_sender(team: Team) -> None:
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer()},
        stages=[
            stage("plan", fn=lambda _ctx: "planned"),
            stage("write", agent="w", writes=["draft.md"]),
            stage("check", fn=lambda _ctx: kickback("plan", "no"), sends_back_to="write"),
        ],
    )
    result = go(team, job)

    error = of_stage(result, "check")["error"]
    assert error["code"] == "CONFIG"
    assert "check" in error["message"]
    assert "plan" in error["message"]


# --- panel, input and function stages -------------------------------------------------------------


def test_w40_a_panel_stage_reads_the_work_and_sends_it_back(team: Team) -> None:
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer(), "r": [team.reviewer("beta-1", 2), team.reviewer("gamma-1", 2)]},
        stages=[
            stage("write", agent="w", writes=["draft.md"]),
            stage("look", fn=lambda _ctx: "looked"),
            stage("review", panel="r", sends_back_to="write"),
        ],
    )
    result = go(team, job)

    assert (result.outcome.status, team.count("alpha-1")) == ("pass", 2)
    assert '"draft.md"' in team.calls["beta-1"][0].prompt
    assert team.calls["beta-1"][0].workspace_mode == "read"
    assert "gamma-1 finding 1" in team.calls["alpha-1"][1].prompt


def test_w42_a_failing_panel_without_a_target_is_a_plain_failure(team: Team) -> None:
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer(), "r": [team.reviewer("beta-1")]},
        stages=[
            stage("write", agent="w", writes=["draft.md"]),
            stage("review", panel="r"),
        ],
    )
    result = go(team, job)

    assert ends(result) == {"write": "pass", "review": "fail"}
    assert team.count("alpha-1") == 1


def test_w37_a_person_without_a_form_says_yes_or_no(team: Team) -> None:
    client = create_callback_client()
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer(), "lead": person("Ship it?")},
        stages=[
            stage("write", agent="w", writes=["draft.md"]),
            stage("ok", input="lead", sends_back_to="write"),
        ],
    )
    answers = iter([{"approved": False, "note": "shorter"}, {"approved": True}])

    def answer(_event: Any) -> None:
        for request in client.list_pending():
            direct_router(client, request, "ada", lambda _request: next(answers))

    result = go(team, job, callbacks=client, on_callback="wait", on_event=answer)

    assert (result.outcome.status, team.count("alpha-1")) == ("pass", 2)
    assert '"shorter"' in team.calls["alpha-1"][1].prompt


FORM = {"id": "lines", "response_schema": {"type": "object"}}


def test_w64_a_person_reviews_each_round_anew_and_the_writer_gets_the_whole_answer(
    team: Team,
) -> None:
    client = create_callback_client()
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer(), "lead": person("Good?", interaction=FORM)},
        stages=[stage("write", agent="w", writes=["draft.md"], reviewed_by="lead", refine=3)],
    )
    seen: list[Any] = []
    said = [
        {"feedback": {"line": 3}, "prompt": "make it rhyme", "decision": "changes-requested"},
        {"feedback": {}, "prompt": "", "decision": "approved"},
    ]

    def answer(_event: Any) -> None:
        for request in client.list_pending():
            seen.append(request)
            direct_router(client, request, "ada", lambda _request: said[len(seen) - 1])

    result = go(team, job, callbacks=client, on_callback="wait", on_event=answer)

    assert (result.outcome.status, team.count("alpha-1")) == ("pass", 2)
    assert "draft 1" in json.dumps(seen[0].to_wire())
    assert seen[0].request_id != seen[1].request_id
    second = team.calls["alpha-1"][1].prompt
    assert "make it rhyme" in second
    assert '{"line": 3}' in second


def test_w35_a_function_must_leave_the_files_it_declares(team: Team) -> None:
    job = workflow(
        "team",
        brief="Do.",
        roles={},
        stages=[stage("make", fn=lambda _ctx: "made", writes=["out.txt"])],
    )

    assert of_stage(go(team, job), "make")["summary"] == "make did not write out.txt."


def test_w51_w53_conditions_and_optional_stages(team: Team) -> None:
    ran: list[str] = []

    def note(name: str) -> Callable[[Any], None]:
        return lambda _ctx: ran.append(name)

    job = workflow(
        "team",
        brief="Do.",
        roles={},
        stages=[
            stage("lint", run="false", optional=True),
            stage("fix", fn=note("fix"), when=failed("lint")),
            stage("skip", fn=note("skip"), when=passed("lint"), needs=["lint"]),
            stage("end", fn=note("end")),
        ],
    )
    result = go(team, job)

    assert (result.outcome.status, ran) == ("pass", ["fix", "end"])
    assert of_stage(result, "skip")["data"] == {"skipped": True}
