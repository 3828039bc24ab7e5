"""The folder of a run: made when a step looks for it, and at once where files are taken over."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from runs.attempts import folders


@pytest.fixture(autouse=True)
def home(tmp_path: Path, settings: Any) -> Path:
    settings.OBVERSA_HOME = tmp_path
    return tmp_path


def test_a_folder_is_made_when_somebody_looks_for_it_and_stays_the_same(home: Path) -> None:
    run = uuid4()
    workspace = folders.workspace_of(run)
    assert not (home / "workspaces").exists()

    assert workspace.dir == workspace.dir == home / "workspaces" / str(run)
    assert workspace.dir.is_dir()
    assert folders.workspace_of(run).dir == workspace.dir


def test_a_run_that_takes_files_over_has_them_before_any_step_looks(home: Path) -> None:
    first, second = uuid4(), uuid4()
    (folders.workspace_of(first).dir / "built.txt").write_text("once")

    folders.workspace_of(second, copied_from=str(first))

    assert (home / "workspaces" / str(second) / "built.txt").read_text() == "once"
