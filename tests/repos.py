"""Git repositories for tests, with one commit in them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.invalid",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.invalid",
}


def git(folder: Path, *arguments: str) -> str:
    """What git prints in the folder, without the last newline."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**os.environ, **_ENVIRONMENT},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.rstrip("\n")


def make_repo(folder: Path, **files: str) -> Path:
    """A repository on branch main that holds the files; `__` in a name is a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name, content in (files or {"a__txt": "one\n"}).items():
        (folder / name.replace("__", ".")).write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def subjects(folder: Path, revision: str = "HEAD") -> list[str]:
    """The commit subjects, newest first."""
    return git(folder, "log", "--topo-order", "--format=%s", revision).splitlines()


def branches(folder: Path) -> list[str]:
    """The local branches."""
    return git(folder, "branch", "--format=%(refname:short)").splitlines()


def is_clean(repo: Path) -> bool:
    """No branch, worktree, folder or pending change is left behind."""
    return (
        branches(repo) == ["main"]
        and len(git(repo, "worktree", "list").splitlines()) == 1
        and git(repo, "status", "--porcelain") == ""
        and not repo.with_name(f"{repo.name}.obversa-worktrees").exists()
    )
