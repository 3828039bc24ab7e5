"""Forks landed by several processes at once, and locks that die with their holders."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runs.engines.filelock import NotWaited, locked
from runs.engines.git import Git, GitFailed, root_of
from runs.engines.worktree import NoFork, open_fork
from tests.repos import branches, git, make_repo, subjects

ROOT = Path(__file__).resolve().parents[2]
LANDER = """
import sys
from pathlib import Path
from runs.engines.worktree import open_fork
repo, name = Path(sys.argv[1]), sys.argv[2]
for number in range(3):
    fork = open_fork(repo, "same", lambda: False)
    (fork.dir / f"{name}-{number}").write_text("x")
    fork.commit_remains(f"by {name}")
    assert fork.land("land", lambda: False, lambda: True)
    closed = fork.close(keep_branch=False)
    assert closed.discarded is None and not closed.troubles, closed
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def never() -> bool:
    return False


def always() -> bool:
    return True


def test_r70_processes_land_one_by_one(repo: Path) -> None:
    landers = [
        subprocess.Popen([sys.executable, "-c", LANDER, str(repo), name], cwd=ROOT)
        for name in "abc"
    ]
    assert [lander.wait(120) for lander in landers] == [0, 0, 0]

    assert len([path for path in repo.iterdir() if "-" in path.name]) == 9
    assert subjects(repo).count("land") == 9
    assert branches(repo) == ["main"]
    assert git(repo, "status", "--porcelain") == ""


def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom runs.engines.filelock import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n    print('held', flush=True)\n    input()\n"
    )
    place = tmp_path / "in" / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(place)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        looks = iter([False, False, True])
        with pytest.raises(NotWaited), locked(place, lambda: next(looks)):
            pass
        holder.kill()
        holder.wait(30)
    with locked(place):
        pass


def test_a_lock_tells_threads_apart(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def hold() -> None:
        with locked(tmp_path / "lock"):
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=hold) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 6


def test_a_leftover_of_a_killed_worker_is_never_used_again(repo: Path) -> None:
    left = open_fork(repo, "step", never)
    (left.dir / "half").write_text("done")
    again = open_fork(repo, "step", never)

    assert (left.branch, again.branch) == ("lines/step-1", "lines/step-2")
    assert not (again.dir / "half").exists()
    again.close(keep_branch=False)
    assert (left.dir / "half").exists()
    assert "lines/step-1" in branches(repo)


def test_a_merge_that_somebody_began_is_left_alone(repo: Path) -> None:
    fork = open_fork(repo, "step", never)
    (fork.dir / "new").write_text("n")
    fork.commit_remains("new")
    git(repo, "switch", "-q", "-c", "side")
    (repo / "a.txt").write_text("side\n")
    git(repo, "commit", "-q", "-am", "side")
    git(repo, "switch", "-q", "main")
    git(repo, "merge", "-q", "--no-ff", "--no-commit", "side")

    with pytest.raises(GitFailed, match="under way"):
        fork.land("land", never, always)
    assert git(repo, "rev-parse", "-q", "--verify", "MERGE_HEAD")


def test_a_repositorys_hooks_do_not_run(repo: Path) -> None:
    for name in ("pre-commit", "post-checkout", "pre-merge-commit", "post-merge"):
        hook = repo / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {repo.parent}/ran-{name}\nexit 1\n")
        hook.chmod(0o755)
    fork = open_fork(repo, "step", never)
    (fork.dir / "new").write_text("n")
    fork.commit_remains("new")

    assert fork.land("land", never, always)
    assert not list(repo.parent.glob("ran-*"))


def test_without_an_identity_the_product_signs(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.setenv("HOME", str(repo.parent))
    git(repo, "config", "user.useConfigOnly", "true")
    fork = open_fork(repo, "step", never)
    (fork.dir / "new").write_text("n")
    fork.commit_remains("new")
    fork.land("land", never, always)
    assert git(repo, "log", "-1", "--format=%an") == "Obversa"

    git(repo, "config", "user.name", "Ben")
    git(repo, "config", "user.email", "ben@example.invalid")
    (fork.dir / "more").write_text("m")
    fork.commit_remains("more")
    assert git(fork.dir, "log", "-1", "--format=%an") == "Ben"


def test_a_process_that_git_started_is_not_led_astray(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repo(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))

    assert root_of(repo) == repo
    assert Git(repo).line("rev-parse", "--show-toplevel") == str(repo)


def test_there_is_nothing_to_fork_without_a_commit(tmp_path: Path) -> None:
    with pytest.raises(NoFork, match="no git repository"):
        open_fork(tmp_path, "x", never)
    git(tmp_path, "init", "-q")
    with pytest.raises(NoFork, match="no commit"):
        open_fork(tmp_path, "x", never)


def test_who_may_not_land_any_more_does_not(repo: Path) -> None:
    fork = open_fork(repo, "step", never)
    (fork.dir / "new").write_text("n")
    fork.commit_remains("new")

    with pytest.raises(NotWaited, match="another worker"):
        fork.land("land", never, never)
    assert subjects(repo) == ["first"]


def test_where_nothing_may_be_written_beside_it_the_worktree_lies_inside(repo: Path) -> None:
    repo.with_name("repo.obversa-worktrees").write_text("in the way")
    fork = open_fork(repo, "step", never)
    (fork.dir / "new").write_text("n")
    fork.commit_remains("new")

    assert fork.dir.is_relative_to(repo / ".git")
    assert fork.land("land", never, always)
    assert not fork.close(keep_branch=False).troubles
    assert (repo / "new").exists()
    assert git(repo, "status", "--porcelain") == ""
