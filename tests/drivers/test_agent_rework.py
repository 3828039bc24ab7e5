"""A writer that is sent back has to change its work (runs.md R51)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runs import (
    EngineError,
    agent_job,
    dag,
    fn_job,
    kickback,
    loop,
    run,
)
from runs.drivers.memory import RunResult
from runs.testing import MockEngine
from tests.repos import git, make_repo


def ask(prompt: Any = "Do it.", **more: Any) -> Any:
    return agent_job(prompt, **{"label": "ask", **more})


def usages(result: RunResult) -> list[dict[str, Any]]:
    told = [dict(event.fields) for event in result.events if event.kind == "engine:usage"]
    return [{key: value for key, value in one.items() if key != "cost"} for one in told]


class Rework:
    """A writer that is sent back, and what it writes each time."""

    def __init__(self, folder: Path, *texts: dict[str, str]) -> None:
        self.folder, self.texts = folder, list(texts)
        self.builds = 0

    def write(self) -> str:
        for name, text in self.texts[min(self.builds, len(self.texts) - 1)].items():
            (self.folder / name).write_text(text)
        self.builds += 1
        return f"build {self.builds}"

    def run(self, *, file: str | None = "draft.md", limit: int = 3) -> RunResult:
        nodes = {
            "write": {
                "job": ask(engine=MockEngine(self.write), workspace_mode="write"),
                "file": file,
            },
            "review": {
                "job": fn_job("review", lambda _ctx: kickback("write", "again")),
                "needs": "write",
                "accepts_kickback_to": ["write"],
            },
        }
        return run(dag("g", nodes, max_kickbacks=limit), cwd=self.folder)


def test_r51_a_writer_that_leaves_its_file_as_it_was_fails_at_once(tmp_path: Path) -> None:
    rework = Rework(tmp_path, {"draft.md": "one"}, {"draft.md": "one", "notes.md": "busy"})

    result = rework.run()

    assert rework.builds == 2
    write: Any = result.outcome.data
    assert write["write"]["error"]["code"] == "VALIDATION"
    assert "draft.md is as it was" in write["write"]["summary"]
    assert result.outcome.error is not None, "a loop around the graph would stop"


def test_r51_without_a_file_any_change_counts(tmp_path: Path) -> None:
    rework = Rework(tmp_path, {"a": "1"}, {"a": "1", "b": "1"}, {"a": "1", "b": "1"})

    result = rework.run(file=None)

    assert rework.builds == 3
    data: Any = result.outcome.data
    assert "the workspace is as it was" in data["write"]["summary"]


def test_w77_committing_the_same_bytes_is_no_change(tmp_path: Path) -> None:
    folder = make_repo(tmp_path / "repo")

    class Commits(Rework):
        def write(self) -> str:
            if self.builds:
                git(folder, "add", "-A")
                git(folder, "commit", "-q", "-m", "the same")
            return super().write()

    for file in ("draft.md", None):
        (folder / "draft.md").unlink(missing_ok=True)
        rework = Commits(folder, {"draft.md": f"one {file}"})
        rework.run(file=file)
        assert rework.builds == 2


def test_r51_a_writer_in_a_loop_in_a_node_uses_the_nodes_file(tmp_path: Path) -> None:
    builds: list[int] = []

    def write() -> str:
        builds.append(1)
        (tmp_path / "draft.md").write_text("the same")
        (tmp_path / "other.md").write_text(str(len(builds)))
        return "written"

    body = ask(engine=MockEngine(write), workspace_mode="write")
    rounds = loop("l", body, review=fn_job("no", lambda _ctx: kickback("x", "no")), max=4)
    result = run(dag("g", {"a": {"job": rounds, "file": "draft.md"}}), cwd=tmp_path)

    assert (result.outcome.status, len(builds)) == ("fail", 2)


def test_r51_a_try_that_is_made_again_compares_with_the_work_before_the_first(
    tmp_path: Path,
) -> None:
    builds: list[int] = []

    def write() -> str:
        builds.append(1)
        (tmp_path / "draft.md").write_text("one" if len(builds) == 1 else "two")
        if len(builds) == 2:
            raise EngineError("rate-limit", "after the work was done", retry_after_ms=1)
        return "written"

    def review(ctx: Any) -> Any:
        return kickback("write", "again") if ctx.graph.attempt == 1 else None

    nodes = {
        "write": {
            "job": ask(engine=MockEngine(write), workspace_mode="write"),
            "file": "draft.md",
        },
        "review": {
            "job": fn_job("review", review),
            "needs": "write",
            "accepts_kickback_to": ["write"],
        },
    }
    result = run(dag("g", nodes, max_kickbacks=1), cwd=tmp_path)

    assert (result.outcome.status, len(builds)) == ("pass", 3)
