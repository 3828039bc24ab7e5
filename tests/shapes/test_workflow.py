"""What a workflow and its stages may be, before any model runs (workflows.md sections 2, 3, 14)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs import (
    LoopError,
    SeatIdentity,
    TeamSeat,
    brief_from_file,
    fn_job,
    job_meta,
    parallel,
    person,
    render_plan,
    stage,
    workflow,
)
from runs.kernel.graph import GraphShape, shape_from_json
from runs.testing import MockEngine, mock_seat
from tests.shapes.team import Team

WRITE: dict[str, Any] = {"agent": "w", "writes": ["a.md"]}


def never(_request: Any) -> str:
    raise AssertionError("a model ran")


ROLES: dict[str, Any] = {
    "w": mock_seat("alpha-1", never),
    "same": [mock_seat("alpha-2", never)],
    "r": [mock_seat("beta-1", never), mock_seat("gamma-1", never)],
    "twins": [mock_seat("beta-1", never), mock_seat("beta-2", never)],
    "blind": [mock_seat("beta-1", never, tools=())],
    "lead": person("Ship it?"),
    "editor": person("Good?", interaction={"id": "e", "response_schema": {"type": "object"}}),
}


def team(*stages: Any, **more: Any) -> Any:
    given = {"brief": "Write.", "roles": ROLES, "stages": stages, **more}
    return workflow(given.pop("name", "team"), **given)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "exactly one of"),
        ({"run": "true", "fn": str}, "run and fn"),
        ({"run": "true", "colour": "red"}, "colour"),
        ({"agent": "w"}, "does not say what it writes"),
        ({"run": "true", "effort": "high"}, "effort"),
        ({"run": "true", "reviewed_by": "r"}, "reviewed_by"),
        ({"run": "true", "agree": 1}, "no panel"),
        ({**WRITE, "agree": 1}, "no panel"),
        ({**WRITE, "reviewed_by": "r", "sends_back_to": "x"}, "not both"),
        ({**WRITE, "refine": -1}, "refine"),
        ({**WRITE, "refine": 1.5}, "refine"),
        ({**WRITE, "refine": True}, "refine"),
        ({**WRITE, "refine": object()}, "judge is not possible yet"),
        ({**WRITE, "goal": "w"}, "not possible yet"),
        ({**WRITE, "synthesise": True}, "not possible yet"),
        ({**WRITE, "retry_safe": "yes"}, "retry_safe"),
        ({"run": "true", "optional": 1}, "optional"),
        ({"run": ""}, "run"),
        ({"run": [1]}, "run"),
        ({"fn": 5}, "fn"),
        ({"panel": "r", "writes": ["a"]}, "writes nothing"),
        ({"agent": "w", "writes": "a.md"}, "writes"),
        ({"agent": "w", "writes": ["../a"]}, "leaves the workspace"),
        ({"agent": "w", "writes": ["/a"]}, "below the workspace"),
        ({"agent": "w", "writes": ["a\\b"]}, "below the workspace"),
        ({"agent": "w", "writes": ["a\0"]}, "below the workspace"),
        ({"agent": "w", "writes": ["."]}, "plain path"),
        ({"agent": "w", "writes": ["a", "a"]}, "twice"),
        ({**WRITE, "desc": ""}, "desc"),
    ],
)
def test_a_stage_that_cannot_be_is_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(LoopError, match=words) as refused:
        stage("s", **keys)

    assert isinstance(refused.value, TypeError)
    assert refused.value.code == "CONFIG"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: team(stage("w", **WRITE), name=" "), "name"),
        (lambda: team(stage("w", **WRITE), brief=" "), "brief"),
        (lambda: team(stage("w", **WRITE), brief=5), "brief"),
        (team, "list of stages"),
        (lambda: team("w"), "list of stages"),
        (lambda: team(stage("w", **WRITE), stage("w", run="true")), "two stages named w"),
        (lambda: team(stage("w", **WRITE), stage("t", run="x", needs=["z"])), "'z'"),
        (lambda: team(stage("w", **{**WRITE, "agent": "nobody"})), "'nobody', which is no role"),
        (lambda: team(stage("w", **{**WRITE, "agent": "r"})), "one seat"),
        (lambda: team(stage("w", **{**WRITE, "agent": "lead"})), "one seat"),
        (lambda: team(stage("p", panel="w")), "list of seats"),
        (lambda: team(stage("p", panel="lead")), "list of seats"),
        (lambda: team(stage("i", input="w")), "person"),
        (lambda: team(stage("w", **WRITE, reviewed_by="w")), "list of seats"),
        (lambda: team(stage("w", **WRITE, reviewed_by="lead")), "interaction"),
        (lambda: team(stage("w", **WRITE, reviewed_by="editor", agree=1)), "agree"),
        (lambda: team(stage("w", **WRITE, reviewed_by="r", agree=3)), "from 1 to 2"),
        (lambda: team(stage("w", **WRITE, reviewed_by="r", agree=0)), "agree"),
        (lambda: team(stage("w", **WRITE, refine=2)), "nothing to count"),
        (lambda: team(stage("t", run="x", sends_back_to="t")), "no earlier stage"),
        (lambda: team(stage("t", run="x", sends_back_to="w"), stage("w", **WRITE)), "earlier"),
        (lambda: team(stage("w", **WRITE, reviewed_by="blind")), "no tool"),
        (lambda: team(stage("f", fn=parallel("p", [fn_job("x", str)]))), "not a graph"),
        (lambda: team(stage("w", **WRITE), roles=[]), "mapping"),
        (lambda: team(stage("w", **WRITE), roles={"w": []}), "without seats"),
        (lambda: team(stage("w", **WRITE), roles={"w": "claude"}), "no seat"),
        (lambda: team(stage("w", **WRITE), options={"speed": 1}), "speed"),
    ],
)
def test_a_workflow_that_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(LoopError, match=words) as refused:
        make()

    assert isinstance(refused.value, TypeError)


@pytest.mark.parametrize("timeout", ["0m", "-1s", "ten", 0, -5, 1.5, "0.0001ms", True, "1d", None])
def test_w12_a_timeout_is_a_positive_duration(timeout: Any) -> None:
    def make() -> Any:
        return team(stage("w", **WRITE), options={"timeout": timeout})

    if timeout is None:
        make()
        return
    with pytest.raises(LoopError, match="duration"):
        make()


def test_w9_a_reviewer_of_the_writers_family_is_refused_before_any_model_runs() -> None:
    cases: tuple[Callable[[], Any], ...] = (
        lambda: team(stage("w", **WRITE, reviewed_by="same")),
        lambda: team(stage("w", **WRITE), stage("p", panel="same")),
        lambda: team(
            stage("w", **WRITE), stage("t", run="x"), stage("p", panel="same", sends_back_to="w")
        ),
    )
    for made in cases:
        with pytest.raises(LoopError, match="one model family, alpha") as refused:
            made()
        assert "'w'" in str(refused.value)


def test_w9_the_reviewers_differ_from_each_other_too() -> None:
    cases: tuple[Callable[[], Any], ...] = (
        lambda: team(stage("w", **WRITE, reviewed_by="twins")),
        lambda: team(stage("p", panel="twins")),
    )
    for made in cases:
        with pytest.raises(LoopError, match="one model family, beta"):
            made()


@pytest.mark.parametrize("missing", ["adapter", "provider", "model_family", "model"])
def test_w7_a_seat_says_who_sits_in_it(missing: str) -> None:
    whole: dict[str, Any] = {
        "adapter": "mock",
        "provider": "p",
        "model_family": "f",
        "model": "f-1",
    }
    seat = TeamSeat(engine=MockEngine(str), identity=SeatIdentity(**{**whole, missing: " "}))

    with pytest.raises(LoopError, match=missing):
        team(stage("w", **WRITE), roles={"w": seat})


def test_w4_each_stage_needs_the_one_before_it_first() -> None:
    job = team(
        stage("a", run="true"),
        stage("b", run="true"),
        stage("c", run="true", needs=["b", "a"]),
    )

    assert [node.needs for node in job.shape.nodes] == [(), ("a",), ("b", "a")]


def test_w10_it_is_described_and_read_back(tmp_path: Path) -> None:
    job = Team(tmp_path).reviewed(Team(tmp_path).reviewer("beta-1"), refine=2)
    meta: Any = job_meta(job)

    assert (meta["kind"], meta["name"], meta["nodes"][0]["job"]["max"]) == ("dag", "team", 3)
    assert any("write" in line for line in render_plan(job))
    read = shape_from_json(job.shape.to_json())
    assert isinstance(read, GraphShape)
    assert read == job.shape


# --- the brief ------------------------------------------------------------------------------------


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "brief.md"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "brief", "files"),
    [
        (" Just text.\n", "Just text.", ()),
        ("---\nfiles: a.md, src/b.py\n---\nThe work.\n", "The work.", ("a.md", "src/b.py")),
        ('---\r\nfiles: ["a.md"]\r\n\r\n---\r\nThe\r\nwork.', "The\nwork.", ("a.md",)),
        ("---\nfiles: a\n---\nOne\n---\nTwo", "One\n---\nTwo", ("a",)),
        ("--- \nno fence", "--- \nno fence", ()),
    ],
)
def test_w16_w17_a_brief_is_read_from_a_file(
    tmp_path: Path, text: str, brief: str, files: tuple[str, ...]
) -> None:
    read = brief_from_file(written(tmp_path, text))

    assert (read.text, read.files) == (brief, files)
    assert team(stage("w", **WRITE), brief=read).shape.brief == brief


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\nfiles: a\nno end", "not closed"),
        ("---\ntitle: x\n---\nb", "'title'"),
        ("---\nfiles\n---\nb", "has no :"),
        ("---\nfiles:\n---\nb", "names no file"),
        ("---\nfiles: []\n---\nb", "names no file"),
        ("---\nfiles: [1]\n---\nb", "no list"),
        ("---\nfiles: a, a\n---\nb", "twice"),
        ("---\nfiles: a\nfiles: b\n---\nb", "twice"),
        ("---\nfiles: /a\n---\nb", "below the workspace"),
        ("---\nfiles: a/../b\n---\nb", "leaves the workspace"),
        ("---\nfiles: a\n---\n  \n", "empty"),
        ("", "empty"),
    ],
)
def test_w18_a_brief_that_cannot_be_names_its_problem(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(LoopError, match=words):
        brief_from_file(written(tmp_path, text))


def test_a_brief_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoopError, match=r"nowhere\.md"):
        brief_from_file(tmp_path / "nowhere.md")
