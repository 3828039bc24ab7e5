from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.examples.repositories import ReleaseContext, commit, git


@pytest.fixture(autouse=True)
def _no_configuration_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a tag and two commits after it."""
    where = tmp_path / "shop"
    where.mkdir()
    git(where, "init", "--quiet", "--initial-branch=main")
    commit(where, "Begin", **{"README.md": "shop", "check.py": "print('14 passed')"})
    git(where, "tag", "--annotate", "--message=First", "v1.0.0")
    commit(where, "Add a basket")
    commit(where, "Sell apples")
    return where


@pytest.fixture
def ctx(repository: Path, tmp_path: Path) -> ReleaseContext:
    return ReleaseContext.at(
        tmp_path / "workspace",
        repository=str(repository),
        version="1.1.0",
        testCommand=f"{sys.executable} check.py",
    )
