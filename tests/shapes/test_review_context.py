from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from runs.drivers.memory import run
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.outcomes import Outcome
from runs.shapes.review_context import review_context
from runs.shapes.steps import fn_job
from tests.repos import git, make_repo

LAST = Outcome(status="fail", summary="2 failed", data={"failed": ["a", "b"]})


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", a__txt="one\n", b__txt="two\n")


def gathered(where: Path, last: Outcome | None = None, **options: Any) -> str:
    gather, held = review_context(**options), list[str]()
    job = fn_job("x", lambda ctx: held.append(asyncio.run(gather(ctx, last))))  # type: ignore[arg-type]  # a coroutine
    outcome = run(job, cwd=where).outcome
    assert outcome.passed, outcome.summary
    return held[0]


def test_r104_nothing_found_is_said_so(tmp_path: Path) -> None:
    nothing = "(nothing to review was found)"

    assert gathered(tmp_path) == nothing
    assert gathered(tmp_path, tests=True, diff=True, files=["gone"]) == nothing


def test_r104_the_last_outcome(tmp_path: Path) -> None:
    text = gathered(tmp_path, LAST, tests=True)

    assert text.startswith("Last outcome: fail\n2 failed\n")
    assert '"failed"' in text
    assert gathered(tmp_path, LAST) == "(nothing to review was found)"


def test_r104_a_commands_exit_and_output(tmp_path: Path) -> None:
    script = "print('3 failed'); raise SystemExit(1)"
    text = gathered(tmp_path, tests={"command": sys.executable, "args": ["-c", script]})

    assert "exited 1" in text
    assert "3 failed" in text


def test_r104_a_command_that_could_not_run_is_never_exit_0(tmp_path: Path) -> None:
    text = gathered(tmp_path, tests={"command": "no-such-program-here"})

    assert "could not be started" in text
    assert "exited 0" not in text


def test_r104_the_diff_shows_staged_unstaged_and_new(repo: Path) -> None:
    (repo / "a.txt").write_text("uno\n")
    (repo / "b.txt").write_text("due\n")
    git(repo, "add", "b.txt")
    (repo / "c.txt").write_text("three\n")
    text = gathered(repo, diff=True)

    for line in ("-one", "+uno", "-two", "+due", "new file: c.txt"):
        assert line in text.splitlines()


def test_r104_a_diff_to_a_revision(repo: Path) -> None:
    (repo / "a.txt").write_text("uno\n")
    git(repo, "commit", "-q", "-am", "second")

    assert "+uno" in gathered(repo, diff="HEAD~1")
    assert gathered(repo, diff=True) == "(nothing to review was found)"
    assert gathered(repo, diff="no-such-revision") == "(nothing to review was found)"


def test_r104_tests_then_diff_then_files_cut_to_size(repo: Path) -> None:
    (repo / "a.txt").write_text("uno\n")
    options = {"tests": True, "diff": True, "files": ["b.txt", Path("a.txt")]}
    text = gathered(repo, LAST, **options)
    places = [text.index(part) for part in ("Last outcome", "Changes:", "File b.txt:\ntwo")]

    assert places == sorted(places)
    assert text.endswith("File a.txt:\nuno\n")
    for limit in (1, 5, 40):
        cut = gathered(repo, LAST, max_chars=limit, **options)
        assert len(cut) == limit
    assert cut.endswith("[cut]")


def test_what_a_reviewer_is_shown_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "conf").write_text("password: hunter2")

    assert "hunter2" not in gathered(tmp_path, files=["conf"])


@pytest.mark.parametrize(
    "options",
    [
        {"files": "a.txt"},
        {"files": [3]},
        {"max_chars": 0},
        {"diff": 3},
        {"diff": "--output=x"},
        {"tests": "pytest"},
        {"tests": {"program": "x"}},
    ],
)
def test_what_cannot_be_gathered_is_refused_when_declared(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        review_context(**options)


def test_a_command_needs_an_executable() -> None:
    with pytest.raises(LoopError):
        review_context(tests={"args": ["-q"]})
