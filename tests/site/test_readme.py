from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def _block(language: str) -> str:
    part = README.read_text(encoding="utf-8").split("## A gate in ten lines", 1)[1]
    found = re.search(rf"```{language}\n(.*?)```", part, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_readmes_gate_prints_what_the_readme_says(tmp_path: Path) -> None:
    script = tmp_path / "gate.py"
    script.write_text(_block("python"), encoding="utf-8")
    printed = subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONPATH": str(README.parent), "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout == _block("json")
    assert printed.stderr == ""
