from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.globs import compiled

SEGMENT = st.text("abc.-_ ", min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("src/**", "src/a.py", True),
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", False),
        ("src/**", "srcs/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "a/b/c.py", True),
        ("a/**/z", "a/z", True),
        ("a/**/z", "a/b/c/z", True),
        ("a/**/z", "a/bz", False),
        ("*.py", "a.py", True),
        ("*.py", "a/b.py", False),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("a?b", "a/b", False),
        ("**", "any/thing at all", True),
        ("a.b", "axb", False),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("a", "a\n", False),
        ("***", "a/b", True),
    ],
)
def test_r79_globs(glob: str, path: str, fits: bool) -> None:
    assert (compiled([glob]).fullmatch(path) is not None) is fits


def test_r79_one_glob_of_several_is_enough() -> None:
    pattern = compiled(["docs/**", "*.md"])

    assert pattern.fullmatch("docs/a/b")
    assert pattern.fullmatch("README.md")
    assert not pattern.fullmatch("src/README.md")


@given(st.lists(SEGMENT, min_size=1, max_size=4))
def test_r79_stars_fit_what_they_stand_for(segments: list[str]) -> None:
    path = "/".join(segments)

    for glob in (path, "**", f"**/{segments[-1]}", "/".join("*" for _ in segments)):
        assert compiled([glob]).fullmatch(path)
    assert not compiled(["/".join("*" for _ in [*segments, "x"])]).fullmatch(path)
