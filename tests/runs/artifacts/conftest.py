from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.artifacts.quotas import in_all
from tests.stores import using


@pytest.fixture(params=["files", "memory", "objects"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Each storage that bytes may lie in, empty."""
    with using(request.param, tmp_path):
        yield request.param


@pytest.fixture(autouse=True)
def nothing_summed_up() -> None:
    in_all.forget()
