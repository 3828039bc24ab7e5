"""Nodes with worktrees of their own (runs.md R128)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runs.drivers.memory import run
from runs.drivers.signal import Signal
from runs.kernel.errors import DeclarationError
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag, pipeline
from runs.shapes.isolating import isolated
from runs.shapes.loop import loop
from runs.shapes.steps import fn_job
from tests.repos import git, is_clean, make_repo, subjects


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", a__txt="one\n")


def writes(**files: str) -> Any:
    def work(ctx: Any) -> str:
        for name, content in files.items():
            (ctx.workspace.dir / name).write_text(content)
        return "wrote it"

    return fn_job("write", work)


def test_r128_a_node_has_a_branch_named_after_it(repo: Path) -> None:
    seen: list[Any] = []
    job = fn_job("w", lambda ctx: seen.append((ctx.workspace.branch, ctx.path)))
    flow = dag("My Graph", {"the node": Node(job=job, isolate=True), "other": job})

    assert run(flow, cwd=repo).outcome.passed
    assert ("lines/my-graph-the-node-1", ("My Graph", "the node")) in seen
    assert (None, ("My Graph", "other")) in seen
    assert is_clean(repo)


def test_r128_the_graphs_isolation_is_the_default_of_its_nodes(repo: Path) -> None:
    flow = pipeline(
        "p",
        [
            {"name": "a", "job": writes(first="1")},
            {"name": "b", "job": writes(second="2")},
            {"name": "c", "job": writes(third="3"), "isolate": False},
        ],
        isolation="worktree",
    )
    assert run(flow, cwd=repo).outcome.passed
    assert subjects(repo)[0] == "Land lines/p-b-1"
    assert "Land lines/p-a-1" in subjects(repo)
    assert git(repo, "status", "--porcelain") == "?? third"


def test_r128_a_step_inside_another_worktree_lands_there_first(repo: Path) -> None:
    inner = isolated(writes(new="n"), label="inner")
    flow = dag("g", {"n": Node(job=inner, isolate=True)})

    assert run(flow, cwd=repo).outcome.passed
    assert subjects(repo)[:2] == ["Land lines/g-n-1", "Land lines/inner-1"]
    assert is_clean(repo)


def test_r128_what_has_steps_of_its_own_is_refused(repo: Path) -> None:
    inner = dag("in", {"a": writes(new="n")})
    for job in (inner, loop("l", writes(new="n"), max=1)):
        with pytest.raises(DeclarationError, match="isolate=False"):
            dag("g", {"n": Node(job=job, isolate=True)})
        with pytest.raises(DeclarationError, match="isolate=False"):
            dag("g", {"n": job}, isolation="worktree")
        with pytest.raises(DeclarationError, match="inside"):
            isolated(job)
    allowed = dag("g", {"n": Node(job=inner, isolate=False)}, isolation="worktree")
    assert run(allowed, cwd=repo).outcome.passed


def test_r128_a_question_needs_no_worktree(repo: Path) -> None:
    flow = dag("g", {"ok": approval("ok", "Ship?")}, isolation="worktree")

    assert run(flow, cwd=repo).outcome.status == "paused"
    assert is_clean(repo)


class Environment:
    """Counts what is up; `env` names the branch it was brought up for."""

    name = "counted"

    def __init__(self, *, breaks: str = "") -> None:
        self.breaks = breaks
        self.told: list[str] = []

    def up(self, workspace: Any, _cancel: Any) -> Any:
        self.told.append(f"up {workspace.branch}")
        if self.breaks == "up":
            raise OSError("no room")
        env = {"BASE_URL": f"http://{workspace.branch}"}
        return SimpleNamespace(url=env["BASE_URL"], env=env, down=self.down)

    async def down(self, cancel: Any) -> None:
        self.told.append("too late" if cancel.is_set() else "down")
        if self.breaks == "down":
            raise OSError("stuck")


def test_r128_each_worktree_has_an_environment_of_its_own(repo: Path) -> None:
    environment, seen = Environment(), list[Any]()

    def look(ctx: Any) -> None:
        environment.told.append("work")
        seen.append((ctx.environment and ctx.environment.url, ctx.variables()))

    job = fn_job("look", look)
    flow = dag(
        "g",
        {"a": Node(job=job, isolate=True), "b": Node(job=job, needs="a")},
        environment=environment,
    )
    assert run(flow, cwd=repo).outcome.passed
    url = "http://lines/g-a-1"
    assert seen == [(url, {"BASE_URL": url}), (None, {})]
    assert environment.told == ["up lines/g-a-1", "work", "down", "work"]


@pytest.mark.parametrize("raises", [True, False])
def test_r128_it_is_taken_down_whatever_happened(repo: Path, raises: bool) -> None:
    environment = Environment()

    def broken(_ctx: Any) -> Any:
        if raises:
            raise ValueError("oh")
        return {"status": "fail"}

    flow = dag("g", {"a": fn_job("a", broken)}, isolation="worktree", environment=environment)
    assert run(flow, cwd=repo).outcome.status == "fail"
    assert environment.told == ["up lines/g-a-1", "down"]


def test_r128_a_cancelled_step_is_tidied_up_too(repo: Path) -> None:
    environment, signal = Environment(), Signal()
    flow = dag(
        "g",
        {"a": fn_job("a", lambda _ctx: signal.set())},
        isolation="worktree",
        environment=environment,
    )
    assert run(flow, cwd=repo, signal=signal).outcome.status == "aborted"
    assert environment.told == ["up lines/g-a-1", "down"]
    assert is_clean(repo)


def test_r128_one_that_does_not_come_up_fails_the_step(repo: Path) -> None:
    flow = dag(
        "g", {"a": writes(new="n")}, isolation="worktree", environment=Environment(breaks="up")
    )
    result = run(flow, cwd=repo)
    (ended,) = (event for event in result.events if event.kind == "job:end")

    assert ended.fields["outcome"]["error"]["code"] == "CONFIG"
    assert is_clean(repo)


def test_e134_one_that_does_not_go_down_is_told_and_changes_nothing(repo: Path) -> None:
    flow = dag(
        "g", {"a": writes(new="n")}, isolation="worktree", environment=Environment(breaks="down")
    )
    result = run(flow, cwd=repo)
    (told,) = (event for event in result.events if event.kind == "error")

    assert result.outcome.passed
    assert "stuck" in told.fields["message"]
    assert (repo / "new").exists()


def test_an_environment_is_something_that_comes_up() -> None:
    with pytest.raises(DeclarationError, match="up"):
        dag("g", {"a": writes()}, environment="staging")
