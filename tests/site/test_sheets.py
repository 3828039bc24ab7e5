"""Style sheets: a slip in one of them silences what follows, and nothing says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

CSS = Path(settings.BASE_DIR) / "static" / "css"
SHEETS = sorted(path.relative_to(CSS).as_posix() for path in CSS.rglob("*.css"))
_WORDS = re.compile(r"/\*.*?\*/|\"[^\"\n]*\"|'[^'\n]*'", re.DOTALL)


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_has_no_rule_that_was_cut_off(name: str) -> None:
    text = _WORDS.sub("", (CSS / name).read_text())

    assert text.count("{") == text.count("}")
    # A list of selectors that ends in a comma takes the block after it along.
    assert re.findall(r",\s*[@{}]", text) == []
    depth = 0
    for mark in re.findall(r"[{}]", text):
        depth += 1 if mark == "{" else -1
        assert depth >= 0
