"""Every test belongs to a pass that finds it (tests/__main__.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests import passes


@dataclass
class Item:
    nodeid: str
    marker: str = ""

    def get_closest_marker(self, name: str) -> bool:
        return name == self.marker


@pytest.mark.parametrize(
    "item",
    [
        Item("tests/kernel/test_plain.py::test_one"),
        Item("tests/browser/test_live.py::test_one[a/b]", "browser"),
        Item("tests/services/test_celery.py::test_one", "redis"),
        Item("tests/site/test_rates.py::test_one", "redis"),
        Item("tests/services/test_soak.py::test_one", "soak"),
    ],
)
def test_what_stands_where_its_pass_looks_is_found(item: Any) -> None:
    assert passes.astray([item]) == []


@pytest.mark.parametrize(
    "item",
    [
        Item("tests/site/test_pages.py::test_one", "browser"),
        Item("tests/browser_tools/test_live.py::test_one", "browser"),
        Item("tests/kernel/test_plain.py::test_one", "redis"),
        Item("tests/services/test_celery.py::test_one", "soak"),
    ],
)
def test_what_stands_elsewhere_is_named(item: Any) -> None:
    (told,) = passes.astray([item])

    assert told.startswith(f"{item.nodeid} is marked {item.marker}")
