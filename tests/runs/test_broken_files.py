"""What a workflow file that does not import says: the line of the file, not of what it called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runs import registry


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("import json\n\njson.loads('{')\n", 3),
        ("def deeper():\n    return int('x')\n\n\ndeeper()\n", 2),
        ("from runs import dag\n\n\n\ndag('wide', [{'name': 'a', 'job': 1, 'needs': []}])\n", 5),
    ],
)
def test_the_line_is_one_of_the_file_itself(
    tmp_path: Path, settings: Any, body: str, line: int
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(body)
    settings.OBVERSA_WORKFLOWS_DIR = str(tmp_path)

    try:
        errors = registry.reload()
    finally:
        broken.unlink()
        registry.reload()

    assert errors[str(broken)].endswith(f"(line {line})")
