from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gates import create_callback_client
from runs import run
from runs.drivers.memory import RunResult
from runs.examples.release import PARAMS, release
from tests.examples.repositories import commit, git

Answer = dict[str, Any]
Person = Callable[[dict[str, Any]], None]


class People:
    """Answers each question as soon as it is asked; what they saw is kept."""

    def __init__(self, answers: Sequence[Answer], *, before: Person | None = None) -> None:
        self.answers = list(answers)
        self.before = before
        self.asked: list[dict[str, Any]] = []
        self.client = create_callback_client()

    def __call__(self, event: dict[str, Any]) -> None:
        if event["kind"] != "callback-requested" or len(self.asked) >= len(self.answers):
            return
        request = event["request"]
        self.asked.append(request)
        answer = self.answers[len(self.asked) - 1]
        if self.before is not None:
            self.before(answer)
        claim: Any = self.client.claim(request["requestId"], "ada")
        result: Any = self.client.submit(
            request["requestId"], claim.claim_token, "ada", request["digest"], answer
        )
        assert result.ok


Start = Callable[..., RunResult]


@pytest.fixture
def start(repository: Path, tmp_path: Path) -> Start:
    def started(people: People, **params: Any) -> RunResult:
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        return run(
            release,
            params={
                "repository": str(repository),
                "version": "1.1.0",
                "testCommand": f"{sys.executable} check.py",
                **params,
            },
            callbacks=people.client,
            on_callback="wait" if people.answers else "exit",
            on_event=people,
            cwd=workspace,
        )

    return started


def ran(result: RunResult) -> list[str]:
    return [event.path[-1] for event in result.events if event.kind == "job:start"]


def artifacts(result: RunResult) -> dict[str, bytes]:
    return {
        str(event.fields["name"]): result.artifacts[str(event.fields["digest"])]
        for event in result.events
        if event.kind == "artifact:stored"
    }


def test_a_yes_releases(start: Start, tmp_path: Path, repository: Path) -> None:
    people = People([{"approved": True}])
    result = start(people)

    assert result.outcome.status == "pass", result.outcome
    assert ran(result) == ["inspect", "test", "build", "approve", "tag", "announce"]
    assert set(artifacts(result)) == {"shop-1.1.0.tar.gz", "test-output.txt", "release-notes.md"}
    (question,) = people.asked
    assert question["decisionText"] == "Approve release **1.1.0**?"
    assert question["input"]["changes"]["count"] == 2
    assert question["presentation"]["summary"][0] == {"label": "Version", "pointer": "/version"}
    clone = tmp_path / "workspace" / "repository.git"
    assert git(clone, "rev-parse", "v1.1.0^{commit}") == git(repository, "rev-parse", "HEAD")


def test_nobody_there_pauses_before_anything_is_tagged(start: Start, tmp_path: Path) -> None:
    result = start(People([]))

    assert result.outcome.status == "paused"
    assert ran(result) == ["inspect", "test", "build", "approve"]
    assert git(tmp_path / "workspace" / "repository.git", "tag") == "v1.0.0"


def test_a_no_goes_back_and_the_next_question_is_a_new_one(
    start: Start, repository: Path, tmp_path: Path
) -> None:
    def fix_it(answer: Answer) -> None:
        if not answer["approved"]:
            commit(repository, "Weigh the apples")

    people = People(
        [{"approved": False, "note": "The apples weigh nothing."}, {"approved": True}],
        before=fix_it,
    )
    result = start(people)

    assert result.outcome.status == "pass", result.outcome
    assert ran(result).count("inspect") == 2
    first, second = (question["input"] for question in people.asked)
    assert (first["round"], first["previousNote"]) == (1, None)
    assert (second["round"], second["previousNote"]) == (2, "The apples weigh nothing.")
    assert (first["changes"]["count"], second["changes"]["count"]) == (2, 3)
    assert first["artifact"]["digest"] != second["artifact"]["digest"]
    clone = tmp_path / "workspace" / "repository.git"
    assert git(clone, "log", "-1", "--format=%s", "v1.1.0") == "Weigh the apples"


def test_the_same_commit_asked_again_is_a_new_question_about_the_same_bytes(start: Start) -> None:
    people = People([{"approved": False, "note": "Not today."}, {"approved": True}])
    result = start(people)

    first, second = people.asked
    assert result.outcome.status == "pass"
    assert first["requestId"] != second["requestId"]
    assert first["input"]["artifact"] == second["input"]["artifact"]


def test_the_third_no_ends_the_run(start: Start, tmp_path: Path) -> None:
    people = People([{"approved": False, "note": f"No, {number}."} for number in (1, 2, 3)])
    result = start(people)

    assert result.outcome.status == "fail"
    assert [question["input"]["round"] for question in people.asked] == [1, 2, 3]
    assert ran(result).count("inspect") == 3
    assert "tag" not in ran(result)
    assert git(tmp_path / "workspace" / "repository.git", "tag") == "v1.0.0"


def test_red_tests_ask_nobody(start: Start, repository: Path) -> None:
    commit(repository, "Break it", **{"check.py": "raise SystemExit(3)"})
    people = People([{"approved": True}])
    result = start(people)

    assert result.outcome.status == "fail"
    assert people.asked == []
    assert ran(result) == ["inspect", "test"]


def test_a_wrong_parameter_is_the_runs_failure(start: Start) -> None:
    result = start(People([{"approved": True}]), version="latest")

    assert result.outcome.status == "fail"
    assert ran(result) == ["inspect"]


@pytest.mark.parametrize(
    ("params", "good"),
    [
        ({"repository": "/srv/shop.git", "version": "2.4.0"}, True),
        ({"repository": "/srv/shop.git", "version": "2.4.0", "push": True}, True),
        ({"repository": "/srv/shop.git", "version": "v2.4.0-rc.1", "revision": "main"}, True),
        ({"repository": "/srv/shop.git"}, False),
        ({"repository": "", "version": "2.4.0"}, False),
        ({"repository": "/srv/shop.git", "version": "latest"}, False),
        ({"repository": "/srv/shop.git", "version": "2.4.0", "push": "yes"}, False),
        ({"repository": "/srv/shop.git", "version": "2.4.0", "branch": "main"}, False),
    ],
)
def test_the_form_knows_what_the_steps_take(params: dict[str, Any], good: bool) -> None:
    Draft202012Validator.check_schema(PARAMS)
    assert Draft202012Validator(PARAMS).is_valid(params) is good
