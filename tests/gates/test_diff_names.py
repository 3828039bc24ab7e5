"""What the files of a change are called on a page."""

from __future__ import annotations

import pytest

from gates.reviews import diffs
from runs.kernel.diffs import FileDiff


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("", ["a file without a name", ""]),
        ("a/", ["a/", ""]),
        ("a/b", ["b", "a"]),
        ("b", ["b", ""]),
    ],
)
def test_every_file_of_a_change_is_called_something(path: str, told: list[str]) -> None:
    one = FileDiff(path=path, status="changed")

    view = diffs.FileView(index=0, file=one)

    assert [view.name, view.folder] == told
