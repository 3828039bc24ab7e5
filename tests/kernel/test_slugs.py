from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.slugs import LONGEST, slug


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("Build it!", "build-it"),
        ("a/b..c", "a-b-c"),
        ("--x--", "x"),
        ("", "step"),
        ("äöü", "step"),
        ("x" * 99, "x" * LONGEST),
    ],
)
def test_a_slug_is_a_part_of_a_branchs_name(name: str, made: str) -> None:
    assert slug(name) == made


@given(st.text())
def test_any_name_has_one(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug(name))
