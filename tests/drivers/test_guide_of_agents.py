"""The examples of docs/agents.md and of the product's own text, run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from runs import brief_from_file, run, stage, workflow
from tests.shapes.team import Team, decision

ROOT = Path(__file__).parents[2]


def examples() -> list[str]:
    """The Python blocks of the guide, in order."""
    text = (ROOT / "docs" / "agents.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_first_example_prints_what_the_guide_says(tmp_path: Path) -> None:
    script = tmp_path / "one_agent_job.py"
    script.write_text(examples()[0])

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("pass\n", "")


def test_the_team_of_the_guide_can_be_declared_and_run(tmp_path: Path) -> None:
    team = Team(tmp_path)

    def write(call: int, _request: Any) -> str:
        (tmp_path / "src").mkdir(exist_ok=True)
        (tmp_path / "src" / "add.py").write_text(f"def add(a, b):\n    return a + b  # {call}\n")
        return decision("pass", "written")

    (tmp_path / "briefs").mkdir()
    (tmp_path / "briefs" / "add.md").write_text("---\nfiles: src/add.py\n---\nAdd two numbers.\n")
    names: dict[str, Any] = {
        "writer": team.seat("alpha-1", write),
        "first": team.reviewer("beta-1", 2),
        "second": team.reviewer("gamma-1", 1, 2),
    }
    code = examples()[1].replace("briefs/add.md", str(tmp_path / "briefs" / "add.md"))
    exec(code.replace('["pytest", "-q"]', '["true"]'), names)

    result = run(names["team"], cwd=tmp_path)

    assert result.outcome.status == "paused", "it waits for the lead's yes"
    assert [team.count(name) for name in ("alpha-1", "beta-1", "gamma-1")] == [2, 2, 2]


def test_a_writer_and_a_reviewer_as_the_seeds_have_them(tmp_path: Path) -> None:
    """The excerpt: a test between the two sends back, and so does the review after it."""
    team = Team(tmp_path)

    def write(call: int, _request: Any) -> str:
        (tmp_path / "add.py").write_text(
            f"def add(a, b):\n    return a {'-' if call == 1 else '+'} b\n"
        )
        (tmp_path / "test_add.py").write_text("from add import add\nassert add(2, 3) == 5\n")
        return decision("pass", f"build {call}")

    brief = tmp_path / "add.md"
    brief.write_text("---\nfiles: add.py, test_add.py\n---\nWrite add(a, b) and a test of it.\n")
    pair = workflow(
        "writer-reviewer-pair",
        brief=brief_from_file(brief),
        options={"timeout": "10m"},
        roles={
            "write": team.seat("claude-sonnet-4-5", write),
            "review": [team.reviewer("gpt-5.6-luna", 1)],
        },
        stages=[
            stage(
                "write",
                agent="write",
                writes=["add.py", "test_add.py"],
                desc="Write the function and its test from the brief.",
                gate="The files named in the brief exist in the workspace.",
                refine=1,
            ),
            stage(
                "test",
                run=[sys.executable, "test_add.py"],
                desc="Run the test command against the written files.",
                gate="The test command exits 0.",
                sends_back_to="write",
            ),
            stage("review", panel="review", sends_back_to="write"),
        ],
    )

    result = run(pair, cwd=tmp_path)

    assert result.outcome.status == "pass"
    assert [team.count(name) for name in ("claude-sonnet-4-5", "gpt-5.6-luna")] == [2, 1]
    assert "AssertionError" in team.calls["claude-sonnet-4-5"][1].prompt
