"""Workflows whose process died, or that wait: the record is taken up where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from runs import EngineError, Outcome, exit_code_for, person, read_record, run, stage, workflow
from runs.drivers.callbacks import create_callback_client, direct_router
from runs.drivers.memory import RunResult
from tests.shapes.team import Team, decision

Line = dict[str, Any]


def go(team: Team, job: Any, **options: Any) -> RunResult:
    return run(job, cwd=team.folder, record_to=team.folder / "run.jsonl", resume=True, **options)


def die_before(team: Team, is_it: Callable[[Line], bool], *, nth: int = 1) -> None:
    """Cut the record off where the process died: before the nth event that is it."""
    path = team.folder / "run.jsonl"
    kept, found = [], 0
    for line in path.read_text().splitlines(keepends=True):
        found += is_it(json.loads(line))
        if found == nth:
            break
        kept.append(line)
    assert found == nth
    path.write_text("".join(kept))


def ends_at(*path: str) -> Callable[[Line], bool]:
    return lambda line: line["kind"] == "job:end" and line["path"] == list(path)


WRITER = ("team", "write", "rounds")
REVIEWER = (*WRITER, "review", "beta-1")


def test_w80_a_review_that_died_runs_its_round_again_and_no_other(team: Team) -> None:
    job = team.reviewed(team.reviewer("beta-1"), refine=2)
    assert go(team, job).outcome.status == "fail"
    die_before(team, ends_at(*REVIEWER), nth=3)

    result = go(team, job)

    # Round 3 runs again: its build, with what round 2 found, and its review. There is no fourth.
    assert (team.count("alpha-1"), team.count("beta-1")) == (4, 4)
    assert '"beta-1 finding 2"' in team.calls["alpha-1"][3].prompt
    assert exit_code_for(result.outcome) == 1
    rounds = [e.fields["iteration"] for e in result.events if e.kind == "loop:iteration"]
    assert rounds == []
    assert not [e for e in result.events if e.kind == "callback-requested"]


def test_w80_a_round_that_runs_again_may_pass(team: Team) -> None:
    job = team.reviewed(team.reviewer("beta-1", 3), refine=1)
    assert go(team, job).outcome.status == "fail"
    die_before(team, ends_at(*REVIEWER), nth=2)

    assert go(team, job).outcome.passed
    assert (team.count("alpha-1"), team.count("beta-1")) == (3, 3)


def test_a_death_between_two_rounds_loses_none(team: Team) -> None:
    job = team.reviewed(team.reviewer("beta-1", 3), refine=2)
    assert go(team, job).outcome.passed
    die_before(team, lambda line: line["kind"] == "loop:iteration", nth=3)

    result = go(team, job)

    assert (team.count("alpha-1"), team.count("beta-1")) == (4, 4)
    assert '"beta-1 finding 2"' in team.calls["alpha-1"][3].prompt
    # The fourth call rejects, and the third round was the last.
    assert result.outcome.status == "fail"


def test_a_death_between_build_and_review_keeps_the_build(team: Team) -> None:
    job = team.reviewed(team.reviewer("beta-1", 1, 2), refine=0)
    assert go(team, job).outcome.passed
    die_before(team, lambda line: line["kind"] == "step:ready" and line["task"] == "review")

    assert go(team, job).outcome.passed
    assert (team.count("alpha-1"), team.count("beta-1")) == (1, 2)


@pytest.mark.parametrize("finished", [True, False])
def test_a_build_that_died_is_asked_about_unless_it_may_run_again(
    team: Team, finished: bool
) -> None:
    job = team.reviewed(team.reviewer("beta-1", 1, 2), refine=0)
    assert go(team, job).outcome.passed
    die_before(team, ends_at(*WRITER))

    client = create_callback_client()
    stopped = go(team, job, callbacks=client)
    (request,) = client.list_pending()
    assert (stopped.outcome.status, team.count("alpha-1")) == ("paused", 1)
    answer = {"action": "finished" if finished else "run-again"}
    direct_router(client, request, "ada", lambda _request: answer)
    result = go(team, job, callbacks=client)

    assert result.outcome.passed
    assert team.count("alpha-1") == (1 if finished else 2)


def test_w56_a_build_that_may_run_again_does_so_without_a_question(team: Team) -> None:
    job = team.reviewed(team.reviewer("beta-1", 1, 2), refine=0, retry_safe=True)
    assert go(team, job).outcome.passed
    die_before(team, ends_at(*WRITER))

    assert go(team, job).outcome.passed
    assert (team.count("alpha-1"), team.count("beta-1")) == (2, 2)


def test_w78_a_limit_in_a_build_gives_no_refinement_back(team: Team) -> None:
    spent = [True]

    def write(call: int, _request: Any) -> str:
        if call == 2 and spent:
            raise EngineError("quota", "come back next month")
        (team.folder / "draft.md").write_text(f"draft {call}")
        return decision("pass", "written")

    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.seat("alpha-1", write), "r": [team.reviewer("beta-1", 2)]},
        stages=[stage("write", agent="w", writes=["draft.md"], reviewed_by="r", refine=1)],
    )
    first = go(team, job)
    assert (first.outcome.status, exit_code_for(first.outcome)) == ("paused", 75)
    spent.clear()
    second = go(team, job)

    assert second.outcome.passed
    assert '"beta-1 finding 1"' in team.calls["alpha-1"][2].prompt
    assert (team.count("alpha-1"), team.count("beta-1")) == (3, 2)


def test_a_reviewer_out_of_service_is_asked_again_and_the_others_are_not(team: Team) -> None:
    spent = [True]

    def review(*_: Any) -> str:
        if spent:
            raise EngineError("quota", "come back next month")
        return decision("pass", "good")

    job = team.reviewed(team.reviewer("beta-1", 1), team.seat("gamma-1", review))
    assert go(team, job).outcome.status == "paused"
    spent.clear()
    second = go(team, job)

    assert second.outcome.passed
    assert [team.count(name) for name in ("alpha-1", "beta-1", "gamma-1")] == [1, 1, 2]


def test_r249_a_stage_whose_rounds_are_used_up_gets_none_by_a_resume(team: Team) -> None:
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer(), "r": [team.reviewer("beta-1", 2, 3)]},
        stages=[
            stage("write", agent="w", writes=["draft.md"], reviewed_by="r", refine=1),
            stage("test", run="false", sends_back_to="write"),
        ],
    )
    assert go(team, job).outcome.status == "fail"
    assert team.count("alpha-1") == 2

    result = go(team, job)

    assert (result.outcome.status, team.count("alpha-1")) == ("fail", 2)


def test_w195_a_finished_stage_is_not_run_again(team: Team) -> None:
    stops = [True]

    def hold(_ctx: Any) -> Any:
        return Outcome(status="fail", summary="not yet") if stops else None

    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer(), "r": [team.reviewer("beta-1", 2)]},
        stages=[
            stage("write", agent="w", writes=["draft.md"], reviewed_by="r"),
            stage("hold", fn=hold),
        ],
    )
    assert go(team, job).outcome.status == "fail"
    stops.clear()

    assert go(team, job).outcome.passed
    assert (team.count("alpha-1"), team.count("beta-1")) == (2, 2)


def variant(team: Team, **changes: Any) -> Any:
    """A workflow that stops at its end, with something of it changed."""
    stages = [
        stage("write", agent="w", **{"writes": ["draft.md"], **changes.pop("write", {})}),
        stage("ok", input="lead"),
        *changes.pop("more", []),
    ]
    roles = {"w": team.writer(changes.pop("model", "alpha-1")), "lead": person("Ship it?")}
    roles |= changes.pop("roles", {})
    return workflow("team", **{"brief": "Write.", "roles": roles, "stages": stages, **changes})


@pytest.mark.parametrize(
    ("change", "again"),
    [
        ({}, False),
        ({"options": {"timeout": "9m"}}, False),
        ({"brief": "Write more."}, True),
        ({"write": {"desc": "Do it well."}}, True),
        ({"write": {"effort": "high"}}, True),
        ({"write": {"retry_safe": True}}, True),
        ({"model": "alpha-2"}, True),
        ({"more": [stage("end", run="true")]}, True),
        ({"roles": {"lead": person("Really?")}}, True),
        ({"roles": {"spare": person("Nobody asks.")}}, True),
    ],
)
def test_w193_another_brief_stage_list_or_seat_starts_over(
    team: Team, change: dict[str, Any], again: bool
) -> None:
    client = create_callback_client()
    assert go(team, variant(team), callbacks=client).outcome.status == "paused"
    (asked,) = client.list_pending()
    builds = sum(map(len, team.calls.values()))

    assert go(team, variant(team, **change), callbacks=client).outcome.status == "paused"

    assert sum(map(len, team.calls.values())) == builds + again
    identities = [
        event.fields["identity"]
        for event in read_record(team.folder / "run.jsonl").events
        if event.kind == "workflow:start"
    ]
    assert len(set(identities)) == 1 + again
    # Nothing is asked twice.
    assert asked.request_id in [one.request_id for one in client.list_pending()] or again


def test_a_changed_brief_with_a_question_open_asks_for_its_own_work_again(team: Team) -> None:
    form = {"id": "lines", "response_schema": {"type": "object"}}

    def job(brief: str) -> Any:
        return workflow(
            "team",
            brief=brief,
            roles={"w": team.writer(), "lead": person("Good?", interaction=form)},
            stages=[stage("write", agent="w", writes=["draft.md"], reviewed_by="lead")],
        )

    client = create_callback_client()
    go(team, job("One."), callbacks=client)
    (first,) = client.list_pending()
    go(team, job("Two."), callbacks=client)

    assert team.count("alpha-1") == 2
    assert "Two." in team.calls["alpha-1"][1].prompt
    (second,) = client.list_pending()
    assert second.request_id != first.request_id


def test_w64_an_open_review_is_waited_for_and_its_answer_taken_up(team: Team) -> None:
    form = {"id": "lines", "response_schema": {"type": "object"}}
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer(), "lead": person("Good?", interaction=form)},
        stages=[stage("write", agent="w", writes=["draft.md"], reviewed_by="lead", refine=1)],
    )
    client = create_callback_client()
    for _ in range(3):
        assert go(team, job, callbacks=client).outcome.status == "paused"
    assert (team.count("alpha-1"), len(client.list_pending())) == (1, 1)

    no = {"feedback": {}, "prompt": "make it rhyme", "decision": "changes-requested"}
    direct_router(client, client.list_pending()[0], "ada", lambda _request: no)
    assert go(team, job, callbacks=client).outcome.status == "paused"
    assert team.count("alpha-1") == 2
    assert "make it rhyme" in team.calls["alpha-1"][1].prompt

    yes = {"feedback": {}, "prompt": "", "decision": "approved"}
    direct_router(client, client.list_pending()[0], "ada", lambda _request: yes)
    assert go(team, job, callbacks=client).outcome.passed
    assert team.count("alpha-1") == 2


def test_builds_never_exceed_their_number_wherever_the_process_dies(team: Team) -> None:
    """Cut the record off after every line: no stage gets a round it does not have."""
    job = workflow(
        "team",
        brief="Write.",
        roles={"w": team.writer(), "r": [team.reviewer("beta-1")]},
        stages=[
            stage(
                "write", agent="w", writes=["draft.md"], reviewed_by="r", refine=2, retry_safe=True
            )
        ],
    )
    go(team, job)
    path = team.folder / "run.jsonl"
    whole = path.read_text().splitlines(keepends=True)
    for end in range(1, len(whole)):
        path.write_text("".join(whole[:end]))
        result = go(team, job)
        events = read_record(path).events
        rounds = [e.fields["iteration"] for e in events if e.kind == "loop:iteration"]
        assert rounds == [1, 2, 3], f"cut after {end}: {whole[end - 1][:120]}"
        assert result.outcome.status == "fail"


def test_reviews_and_send_backs_share_their_rounds_wherever_the_process_dies(team: Team) -> None:
    """Cut the record off after every line: the same end, and no build too many."""

    def draft(_request: Any) -> int:
        path = team.folder / "draft.md"
        return int(path.read_text().split()[1]) if path.exists() else 0

    def write(_call: int, request: Any) -> str:
        (team.folder / "draft.md").write_text(f"draft {draft(request) + 1}")
        return decision("pass", "written")

    def review(_call: int, request: Any) -> str:
        # The first draft is no good to anybody; what comes after it is.
        return decision("pass" if draft(request) > 1 else "revise", "read")

    job = workflow(
        "team",
        brief="Write.",
        roles={
            "w": team.seat("alpha-1", write),
            "r": [team.seat("beta-1", review), team.seat("gamma-1", review)],
        },
        stages=[
            stage(
                "write", agent="w", writes=["draft.md"], reviewed_by="r", refine=2, retry_safe=True
            ),
            stage("test", run="false", sends_back_to="write", retry_safe=True),
        ],
    )
    go(team, job)
    path = team.folder / "run.jsonl"
    whole = path.read_text().splitlines(keepends=True)
    for end in range(1, len(whole)):
        path.write_text("".join(whole[:end]))
        drafts = sum('"job:end"' in line and '"label":"write"' in line for line in whole[:end])
        (team.folder / "draft.md").unlink()
        if drafts:
            (team.folder / "draft.md").write_text(f"draft {drafts}")
        result = go(team, job)

        where = f"cut after {end}: {whole[end - 1][:100]}"
        events = read_record(path).events
        begun = [event for event in events if event.kind == "loop:iteration"]
        sent = [event.fields["accepted"] for event in events if event.kind == "dag:kickback"]
        # What a round that runs again finds may differ; how many there are does not.
        assert (len(begun), sent[-1], sent.count(False)) == (3, False, 1), where
        assert result.outcome.status == "fail", where
