"""Steps in worktrees of their own, with real repositories (runs.md R68-R73, R128)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.memory import RunResult, run
from runs.drivers.signal import Signal
from runs.kernel.errors import DeclarationError
from runs.kernel.outcomes import Outcome
from runs.shapes.approval import approval
from runs.shapes.dag import Node, dag
from runs.shapes.isolating import isolated
from runs.shapes.plan import job_meta, render_plan
from runs.shapes.steps import fn_job
from tests.engines.mocks import SayingEngine
from tests.repos import branches, git, is_clean, make_repo, subjects


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", a__txt="one\n")


def writes(**files: str) -> Any:
    def work(ctx: Any) -> str:
        for name, content in files.items():
            (ctx.workspace.dir / name.replace("__", ".")).write_text(content)
        return "wrote it"

    return fn_job("write", work)


def commits(ctx: Any, subject: str, **files: str) -> None:
    for name, content in files.items():
        (ctx.workspace.dir / name).write_text(content)
    git(ctx.workspace.dir, "add", "-A")
    git(ctx.workspace.dir, "commit", "-q", "-m", subject)


def logs(result: RunResult, level: str = "warn") -> list[str]:
    found = [event.fields for event in result.events if event.kind == "log"]
    return [str(fields["message"]) for fields in found if fields["level"] == level]


def test_r68_a_pass_lands_with_a_merge_commit(repo: Path) -> None:
    seen: list[Any] = []

    def work(ctx: Any) -> str:
        seen.append((ctx.workspace, ctx.path, ctx.depth))
        assert not (repo / "new").exists()
        (ctx.workspace.dir / "new").write_text("n")
        return "made it new"

    result = run(dag("g", {"n": isolated(fn_job("w", work), label="Make It")}), cwd=repo)
    ((where, path, depth),) = seen

    assert result.outcome.passed
    assert (repo / "new").read_text() == "n"
    assert subjects(repo) == ["Land lines/make-it-1", "made it new", "first"]
    assert len(git(repo, "rev-list", "--merges", "HEAD").splitlines()) == 1
    assert (where.branch, where.origin) == ("lines/make-it-1", repo)
    assert (path, depth) == (("g", "n", "Make It"), 2)
    assert is_clean(repo)


@pytest.mark.parametrize("status", ["fail", "exhausted", "aborted", "paused"])
def test_r68_on_any_other_status_nothing_lands(repo: Path, status: Any) -> None:
    def work(ctx: Any) -> Outcome:
        (ctx.workspace.dir / "new").write_text("n")
        return Outcome(status=status, summary="no")

    result = run(isolated(fn_job("w", work)), cwd=repo)
    assert result.outcome == Outcome(status=status, summary="no")
    assert subjects(repo) == ["first"]
    assert is_clean(repo)


def test_r68_commits_of_its_own_land_as_they_are(repo: Path) -> None:
    job = fn_job("w", lambda ctx: commits(ctx, "by hand", new="n"))

    assert run(isolated(job), cwd=repo).outcome.passed
    assert subjects(repo) == ["Land lines/isolated-1", "by hand", "first"]


def test_r68_nothing_done_lands_nothing(repo: Path) -> None:
    assert run(isolated(fn_job("w", lambda _ctx: None)), cwd=repo).outcome.passed
    assert subjects(repo) == ["first"]
    assert is_clean(repo)


@pytest.mark.parametrize("record", ["as told", lambda ctx, outcome: f"as {outcome.summary[:4]}"])
def test_e140_the_record_is_the_message(repo: Path, record: Any) -> None:
    def work(ctx: Any) -> str:
        (ctx.workspace.dir / "new").write_text("n")
        return "told"

    run(isolated(fn_job("w", work), record=record), cwd=repo)
    assert subjects(repo)[1] == "as told"


def test_r69_a_name_that_exists_is_skipped(repo: Path) -> None:
    git(repo, "branch", "lines/isolated-1")
    git(repo, "branch", "lines/isolated-2")

    run(isolated(writes(new="n")), cwd=repo)
    assert subjects(repo)[0] == "Land lines/isolated-3"
    assert branches(repo) == ["lines/isolated-1", "lines/isolated-2", "main"]


def test_r70_many_at_once_land_one_by_one(repo: Path) -> None:
    together = threading.Barrier(4)

    def node(name: str) -> Any:
        def work(ctx: Any) -> str:
            together.wait(30)
            (ctx.workspace.dir / name).write_text(name)
            together.wait(30)
            return f"by {name}"

        return fn_job(name, work)

    flow = dag("g", {name: node(name) for name in "wxyz"}, isolation="worktree")
    assert run(flow, cwd=repo).outcome.passed
    assert {path.name for path in repo.iterdir()} >= set("wxyz")
    assert len(git(repo, "rev-list", "--merges", "HEAD").splitlines()) == 4
    assert is_clean(repo)


def conflicting(on_conflict: Any = "fail", **options: Any) -> Any:
    """A step whose line is changed in the workspace while it works."""

    def work(ctx: Any) -> str:
        (ctx.workspace.dir / "a.txt").write_text("theirs\n")
        (ctx.workspace.origin / "a.txt").write_text("ours\n")
        git(ctx.workspace.origin, "commit", "-q", "-am", "meanwhile")
        return "done"

    return isolated(fn_job("w", work), on_conflict=on_conflict, **options)


def test_r71_a_conflict_fails_the_step_and_keeps_the_branch(repo: Path) -> None:
    result = run(conflicting(), cwd=repo)

    assert result.outcome.error is not None
    assert result.outcome.error["code"] == "BODY"
    assert "lines/isolated-1 conflicts in a.txt" in str(result.outcome.summary)
    assert "error" in [event.kind for event in result.events]
    assert branches(repo) == ["lines/isolated-1", "main"]
    assert git(repo, "show", "lines/isolated-1:a.txt") == "theirs"
    assert subjects(repo) == ["meanwhile", "first"]
    assert git(repo, "status", "--porcelain") == ""
    assert len(git(repo, "worktree", "list").splitlines()) == 1


def test_r71_an_agent_may_resolve_it(repo: Path) -> None:
    def resolve(request: Any) -> str:
        place = Path(request.cwd)
        assert "<<<<<<<" in (place / "a.txt").read_text()
        assert request.workspace_mode == "write"
        assert "a.txt" in request.prompt
        (place / "a.txt").write_text("ours and theirs\n")
        return "resolved"

    result = run(conflicting("synthesize"), cwd=repo, engine=SayingEngine(resolve))
    assert result.outcome.passed, result.outcome.summary
    assert (repo / "a.txt").read_text() == "ours and theirs\n"
    assert is_clean(repo)


@pytest.mark.parametrize(
    "engine", [None, SayingEngine("did nothing"), SayingEngine(OSError("away"))]
)
def test_r71_a_failed_synthesis_fails_the_step(repo: Path, engine: Any) -> None:
    result = run(conflicting("synthesize"), cwd=repo, engine=engine)

    assert result.outcome.error is not None
    assert result.outcome.error["code"] == "BODY"
    assert "lines/isolated-1" in branches(repo)
    assert (repo / "a.txt").read_text() == "ours\n"
    assert git(repo, "status", "--porcelain") == ""


def test_r71_uncommitted_work_in_the_way_fails_the_step_and_stays(repo: Path) -> None:
    def work(ctx: Any) -> None:
        (ctx.workspace.dir / "a.txt").write_text("theirs\n")
        (ctx.workspace.origin / "a.txt").write_text("uncommitted\n")

    result = run(isolated(fn_job("w", work)), cwd=repo)
    assert result.outcome.status == "fail"
    assert (repo / "a.txt").read_text() == "uncommitted\n"
    assert "lines/isolated-1" in branches(repo)


def test_r19_r72_commits_that_never_landed_are_named(repo: Path) -> None:
    shas: list[str] = []

    def work(ctx: Any) -> Outcome:
        commits(ctx, "for nothing", new="n")
        shas.append(git(ctx.workspace.dir, "rev-parse", "HEAD"))
        return Outcome(status="fail", summary="no")

    outcome = run(isolated(fn_job("w", work)), cwd=repo).outcome
    assert outcome.discarded == ({"branch": "lines/isolated-1", "sha": shas[0]},)
    assert is_clean(repo)


def test_r72_a_job_that_raises_keeps_its_branch_with_all_there_was(repo: Path) -> None:
    def broken(ctx: Any) -> None:
        (ctx.workspace.dir / "half").write_text("done")
        raise ValueError("oh")

    result = run(isolated(broken), cwd=repo)
    assert result.outcome.status == "fail"
    assert branches(repo) == ["lines/isolated-1", "main"]
    assert git(repo, "show", "lines/isolated-1:half") == "done"
    assert logs(result) == ["the branch lines/isolated-1 is kept."]
    assert len(git(repo, "worktree", "list").splitlines()) == 1


def test_r72_a_step_that_raises_has_failed_and_keeps_none(repo: Path) -> None:
    def broken(ctx: Any) -> None:
        commits(ctx, "half", half="done")
        raise ValueError("oh")

    result = run(isolated(fn_job("w", broken)), cwd=repo)
    assert result.outcome.summary == "oh"
    assert len(result.outcome.discarded) == 1
    assert is_clean(repo)


def test_r72_a_failed_cleanup_changes_no_outcome(repo: Path) -> None:
    def work(ctx: Any) -> str:
        # Somebody else checks the branch out, so that git will not delete it.
        git(ctx.workspace.dir, "switch", "-q", "-c", "elsewhere")
        git(repo, "worktree", "add", "-q", str(repo.with_name("other")), "lines/isolated-1")
        return "fine"

    result = run(isolated(fn_job("w", work)), cwd=repo)
    assert result.outcome == Outcome(status="pass", summary="fine")
    assert "lines/isolated-1" in branches(repo)
    assert "could not be cleaned up" in logs(result)[0]


@pytest.mark.parametrize("empty", [True, False])
def test_r73_outside_a_repository_it_runs_in_the_workspace(tmp_path: Path, empty: bool) -> None:
    if empty:
        git(tmp_path, "init", "-q")
    result = run(isolated(writes(new="n")), cwd=tmp_path)

    assert result.outcome.passed
    assert (tmp_path / "new").read_text() == "n"
    (said,) = logs(result)
    assert "shared workspace" in said


def test_r73_a_folder_its_project_ignores_is_no_repository(repo: Path) -> None:
    (repo / ".gitignore").write_text("own/\n")
    (repo / "own").mkdir()
    result = run(isolated(writes(new="n")), cwd=repo / "own")

    assert (repo / "own" / "new").exists()
    assert "no git repository" in logs(result)[0]


def test_e142_what_is_not_committed_is_not_in_the_fork(repo: Path) -> None:
    (repo / "a.txt").write_text("pending\n")
    seen: list[str] = []
    job = fn_job("w", lambda ctx: seen.append((ctx.workspace.dir / "a.txt").read_text()))

    result = run(isolated(job), cwd=repo)
    assert seen == ["one\n"]
    assert logs(result) == ["lines/isolated-1 does not hold what is not committed: a.txt."]
    assert (repo / "a.txt").read_text() == "pending\n"


def test_a_workspace_inside_a_repository_keeps_its_place(repo: Path) -> None:
    (repo / "sub").mkdir()
    (repo / "sub" / "kept").write_text("k")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "sub")
    run(isolated(writes(new="n")), cwd=repo / "sub")

    assert (repo / "sub" / "new").read_text() == "n"


def test_d4_a_step_that_asks_starts_again_in_a_new_worktree(repo: Path) -> None:
    asks = approval("ok", "Ship?", input=lambda ctx: ctx.workspace.branch)
    flow = dag("g", {"ok": Node(job=asks, isolate=True)})

    assert run(flow, cwd=repo).outcome.status == "paused"
    assert is_clean(repo)


def test_a_cancel_before_the_landing_lands_nothing(repo: Path) -> None:
    signal = Signal()

    def work(ctx: Any) -> str:
        (ctx.workspace.dir / "new").write_text("n")
        signal.set()
        return "too late"

    outcome = run(isolated(fn_job("w", work)), cwd=repo, signal=signal).outcome
    assert outcome.status == "aborted"
    assert not (repo / "new").exists()
    assert branches(repo) == ["main"]


def test_a_result_that_is_no_outcome_lands_nothing(repo: Path) -> None:
    def work(ctx: Any) -> Any:
        (ctx.workspace.dir / "new").write_text("n")
        return Outcome(status="pass", data={1, 2})  # type: ignore[arg-type]  # wrong on purpose

    assert run(isolated(fn_job("w", work)), cwd=repo).outcome.status == "fail"
    assert is_clean(repo)


@pytest.mark.parametrize(
    "options",
    [
        {"label": ""},
        {"on_conflict": "panic"},
        {"record": 3},
        {"job": 3},
        {"job": approval("ok", "Ship?")},
    ],
)
def test_what_cannot_be_isolated_is_refused_when_declared(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        isolated(**{"job": writes(), **options})
    with pytest.raises(DeclarationError):
        dag("g", {"a": writes()}, isolation="box")  # type: ignore[arg-type]  # wrong on purpose


def test_r186_its_meta_holds_the_step() -> None:
    assert job_meta(isolated(writes(), label="apart")) == {
        "kind": "isolated",
        "name": "apart",
        "job": {"kind": "fn", "name": "write"},
    }
    assert render_plan(isolated(writes(), label="apart")) == ["isolated apart", "  fn write"]
    assert render_plan(isolated(print)) == ["isolated isolated", "  (a hand-written job)"]
