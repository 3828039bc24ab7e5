"""The scripts of the guide run as they are printed, and load no framework."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "scripts.md").read_text(encoding="utf-8")
SCRIPTS = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", GUIDE, re.DOTALL))
README_GATE = re.findall(
    r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
)[0]
# Runs the script as a file of its own, and tells afterwards what it loaded.
RUNNER = """
import atexit, runpy, sys
atexit.register(lambda: sys.stderr.write(f"django={'django' in sys.modules}"))
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def start(folder: Path, text: str) -> tuple[int, list[str]]:
    """Exit code and printed lines of a script; it must have loaded no framework."""
    script = folder / "script.py"
    script.write_text(text, encoding="utf-8")
    told = subprocess.run(
        [sys.executable, "-c", RUNNER, str(script)],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert told.stderr == "django=False"
    return told.returncode, told.stdout.splitlines()


def promised(text: str) -> list[str]:
    """What stands behind `# ` on the lines that print, and on the lines that are nothing else."""
    return [str(line) for line in re.findall(r"^(?:.*print\(.*\)  )?# (.*)$", text, re.MULTILINE)]


def test_the_guide_has_its_scripts() -> None:
    assert list(SCRIPTS) == [
        "hello.py",
        "team.py",
        "cleanup.py",
        "answer.py",
        "cancel.py",
        "page.py",
    ]


@pytest.mark.parametrize("name", ["hello.py", "cancel.py", "page.py"])
def test_a_script_prints_what_stands_beside_it(tmp_path: Path, name: str) -> None:
    assert promised(SCRIPTS[name])
    assert start(tmp_path, SCRIPTS[name]) == (0, promised(SCRIPTS[name]))


def test_the_team_prints_what_stands_below_it(tmp_path: Path) -> None:
    (printed,) = re.findall(r"```text\n(analyse.*?)```", GUIDE, re.DOTALL)
    assert start(tmp_path, SCRIPTS["team.py"]) == (0, printed.splitlines())


def test_the_cleanup_waits_for_its_answer_and_carries_on(tmp_path: Path) -> None:
    cleanup, answer = SCRIPTS["cleanup.py"], SCRIPTS["answer.py"]

    assert start(tmp_path, cleanup) == (75, ["counting", "paused"])
    for _ in range(2):
        assert start(tmp_path, cleanup) == (75, ["paused"])
    printed = ["Delete them? {'count': '3 rows are stale'}", "True"]
    assert start(tmp_path, answer) == (0, printed)
    assert f"`{printed[0]}`" in GUIDE
    assert start(tmp_path, answer) == (0, [])
    assert start(tmp_path, cleanup) == (0, ["deleting", "pass"])
    assert start(tmp_path, cleanup) == (0, ["pass"])


def test_the_readmes_gate_loads_no_framework(tmp_path: Path) -> None:
    code, printed = start(tmp_path, README_GATE)

    assert code == 0
    assert '  "replayedPending": 0' in printed
