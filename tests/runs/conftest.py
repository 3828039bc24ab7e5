from __future__ import annotations

from collections.abc import Iterator

import pytest

from runs import publishing, registry
from runs.turns import folding


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """Every test begins like a process that has just started, with the shipped workflows."""
    registry.load()
    before = dict(publishing.offered())
    folding.forget()
    yield
    publishing._offered.clear()
    publishing._offered.update(before)
