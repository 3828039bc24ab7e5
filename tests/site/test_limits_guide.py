"""The table of limits says what the code says, and SECURITY.md names tests that there are."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from django.conf import settings

GUIDE = Path(settings.BASE_DIR) / "docs" / "limits.md"
ROW = re.compile(r"^\| (?P<what>[^|]+) \| (?P<number>\d+)\b[^|]* \| `(?P<place>[\w.]+)` \|$")
ROWS = [
    found
    for line in GUIDE.read_text(encoding="utf-8").splitlines()
    if (found := ROW.fullmatch(line)) is not None
]


def test_every_row_of_the_table_is_read() -> None:
    lines = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if "`" in line]

    assert len(ROWS) == sum(line.startswith("| ") for line in lines)
    assert len(ROWS) > 25


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["place"])
def test_the_number_is_the_one_in_the_code(row: re.Match[str]) -> None:
    module, _, name = row["place"].rpartition(".")

    assert getattr(import_module(module), name) == int(row["number"])


def test_the_tests_that_security_names_are_there() -> None:
    root = Path(settings.BASE_DIR)
    text = (root / "SECURITY.md").read_text(encoding="utf-8")
    cells = [line.rsplit("|", 2)[1] for line in text.splitlines() if line.count("|") == 4]
    named = [name for cell in cells for name in re.findall(r"`([\w/.]+)`", cell) if "/" in name]

    assert len(named) > 20
    assert [name for name in named if not (root / "tests" / name).exists()] == []
