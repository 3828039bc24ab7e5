"""The examples of the author's guide run, and print what the guide says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.repos import make_repo

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "workflows.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
PRINTED = [block for block in BLOCKS if "print(" in block]


def promised(block: str) -> list[str]:
    """What stands behind `# ` on the lines that print, and on the lines that are nothing else."""
    told = re.findall(r"^(?:.*print\(.*\)  )?# (.*)$", block, re.MULTILINE)
    return [str(line) for line in told]


def test_the_guide_has_examples() -> None:
    assert len(PRINTED) >= 9
    assert all(promised(block) for block in PRINTED)


@pytest.mark.parametrize("block", PRINTED, ids=range(len(PRINTED)))
def test_an_example_prints_what_the_guide_says(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(make_repo(tmp_path / "work", a__txt="one\n"))

    exec(compile(block, str(GUIDE), "exec"), {"__name__": "example"})

    assert capsys.readouterr().out.splitlines() == promised(block)
