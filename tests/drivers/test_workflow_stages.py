"""Workflows in one process: what goes back to a stage, panels, people, and conditions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from runs import (
    Outcome,
    exit_code_for,
    failed,
    kickback,
    passed,
    person,
    stage,
    workflow,
)
from runs.drivers.callbacks import create_callback_client, direct_router
from tests.shapes.team import Team, ends, go, of_stage

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
