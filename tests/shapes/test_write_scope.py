from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs.drivers.memory import run
from runs.engines import changes
from runs.kernel.conditions import Condition, ConditionResult, describe_conditions
from runs.kernel.errors import DeclarationError
from runs.shapes.dag import Node, dag
from runs.shapes.loop import loop
from runs.shapes.steps import fn_job, gate_job
from runs.shapes.write_scope import write_scope
from tests.repos import git, make_repo


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", a__txt="one\n", b__txt="two\n")


def judged(condition: Condition, where: Path, **more: Any) -> ConditionResult:
    held: list[ConditionResult] = []

    def check(ctx: Any) -> None:
        for key, value in more.items():
            setattr(ctx, key, value)
        held.append(condition(ctx, None))

    assert run(fn_job("check", check), cwd=where).outcome.passed
    return held[0]


def entered(where: Path) -> dict[str, Any]:
    changes.remember("r/loop/1", where, lambda: False)
    return {"run_id": "r", "loop_entries": ("loop/1",)}


def test_r77_staged_unstaged_and_untracked_changes_all_count(repo: Path) -> None:
    assert judged(write_scope("x"), repo).met
    (repo / "a.txt").write_text("changed")
    (repo / "b.txt").unlink()
    (repo / "new").mkdir()
    (repo / "new" / "c.txt").write_text("c")
    (repo / "staged.txt").write_text("s")
    git(repo, "add", "staged.txt")
    outside = judged(write_scope("z/**"), repo)

    assert not outside.met
    assert outside.output == "a.txt\nb.txt\nnew/c.txt\nstaged.txt"
    assert outside.reason == "outside the scope: a.txt, b.txt, new/c.txt and 1 more"
    assert judged(write_scope(["*.txt", "new/**"]), repo).met


def test_r77_what_was_dirty_when_the_loop_was_entered_is_ignored(repo: Path) -> None:
    (repo / "a.txt").write_text("dirty before")
    (repo / "untracked").write_text("before")
    loop = entered(repo)
    (repo / "b.txt").write_text("in the loop")

    assert judged(write_scope("b.txt"), repo, **loop).met
    assert judged(write_scope("a.txt"), repo, **loop).output == "b.txt"


@pytest.mark.parametrize("change", ["content", "mode", "index", "gone"])
def test_r77_unless_it_changed_again(repo: Path, change: str) -> None:
    (repo / "a.txt").write_text("dirty before")
    loop = entered(repo)
    match change:
        case "content":
            (repo / "a.txt").write_text("dirty after!")
        case "mode":
            (repo / "a.txt").chmod(0o755)
        case "index":
            git(repo, "add", "a.txt")
        case _:
            (repo / "a.txt").unlink()

    assert judged(write_scope("b.txt"), repo, **loop).output == "a.txt"


def test_r77_the_first_look_at_a_loop_stands(repo: Path) -> None:
    loop = entered(repo)
    (repo / "a.txt").write_text("by the first step")
    entered(repo)

    assert judged(write_scope("b.txt"), repo, **loop).output == "a.txt"


def test_r78_absolute_looks_at_everything_pending(repo: Path) -> None:
    (repo / "a.txt").write_text("dirty before")
    loop = entered(repo)

    assert judged(write_scope("b.txt"), repo, **loop).met
    assert not judged(write_scope("b.txt", mode="absolute"), repo, **loop).met


def test_r78_outside_a_loop_it_is_always_absolute(repo: Path) -> None:
    (repo / "a.txt").write_text("dirty")

    assert not judged(write_scope("b.txt"), repo).met


def test_paths_are_relative_to_the_place_that_is_looked_at(repo: Path) -> None:
    (repo / "sub").mkdir()
    (repo / "sub" / "x.py").write_text("x")

    assert judged(write_scope("*.py", cwd="sub"), repo).met
    assert judged(write_scope("*.py"), repo / "sub").met
    (repo / "a.txt").write_text("changed")
    assert judged(write_scope("*.py", cwd="sub"), repo).output == "../a.txt"


def test_r80_outside_a_repository_it_is_not_met(tmp_path: Path) -> None:
    result = judged(write_scope("**"), tmp_path)

    assert not result.met
    assert "no git repository" in result.reason


def test_r80_a_repository_that_cannot_be_read_is_not_met(repo: Path) -> None:
    (repo / "a.txt").write_text("x")
    (repo / ".git" / "index").write_bytes(b"broken")

    assert not judged(write_scope("**"), repo).met


def test_r80_a_folder_that_its_project_ignores_is_no_repository(repo: Path) -> None:
    (repo / ".gitignore").write_text("own/\n")
    (repo / "own").mkdir()

    assert "no git repository" in judged(write_scope("**"), repo / "own").reason


def test_r80_the_reason_names_three_and_the_output_fifty(repo: Path) -> None:
    for number in range(60):
        (repo / f"f{number:02}").write_text("x")
    result = judged(write_scope("none"), repo)

    assert result.reason == "outside the scope: f00, f01, f02 and 57 more"
    assert result.output is not None
    assert result.output.splitlines()[49:] == ["f49", "and 10 more"]


@pytest.mark.parametrize("name", ["with space", "tab\there", 'quo"te', "über", "new\nline", "-x"])
def test_any_file_name_is_read(repo: Path, name: str) -> None:
    (repo / name).write_text("x")

    assert judged(write_scope(name), repo).met
    assert judged(write_scope("other"), repo).output == name


@pytest.mark.parametrize("given", [{"globs": []}, {"globs": [""]}, {"globs": [3]}])
def test_a_scope_needs_globs(given: Any) -> None:
    with pytest.raises(DeclarationError):
        write_scope(**given)


def test_a_mode_is_one_of_two() -> None:
    with pytest.raises(DeclarationError):
        write_scope("x", mode="relative")  # type: ignore[arg-type]  # wrong on purpose


def test_its_label_names_the_globs() -> None:
    assert describe_conditions(write_scope(["src/**", "*.md"])) == ["writes only src/**, *.md"]


def writes(*names: str) -> Any:
    def work(ctx: Any) -> None:
        for name in names:
            (ctx.workspace.dir / name).write_text(f"round {ctx.iteration}")

    return fn_job("write", work)


def test_r77_a_loop_sees_its_own_work_and_not_what_was_there(repo: Path) -> None:
    (repo / "a.txt").write_text("dirty before")

    def rounds(name: str, **checks: Any) -> str:
        return run(loop("l", writes(name), max=2, **checks), cwd=repo).outcome.status

    assert rounds("src.py", until=write_scope("*.py")) == "pass"
    assert rounds("b.txt", until=write_scope("*.py")) == "exhausted"
    assert rounds("c.py", start=write_scope("*.py"), until=write_scope("c.py")) == "pass"


def test_r77_a_gate_in_the_body_and_a_nested_loop_see_it_too(repo: Path) -> None:
    (repo / "a.txt").write_text("dirty before")

    def body(*globs: str) -> Any:
        gate = gate_job("scope", write_scope(globs))
        return dag("g", {"w": writes("x.py"), "gate": Node(job=gate, needs="w")})

    assert run(loop("l", body("*.py"), max=1), cwd=repo).outcome.passed
    (repo / "x.py").unlink()
    assert not run(loop("l", body("*.md"), max=1), cwd=repo).outcome.passed
    (repo / "x.py").unlink()
    inner = loop("in", writes("x.py"), max=1)
    assert run(loop("out", inner, until=write_scope("*.py"), max=1), cwd=repo).outcome.passed


def test_r77_what_no_loop_watches_costs_no_look(repo: Path) -> None:
    assert run(loop("l", writes("x.py"), max=1), cwd=repo).outcome.passed

    assert not (repo / ".git" / "obversa").exists()
