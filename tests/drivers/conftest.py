from __future__ import annotations

from pathlib import Path

import pytest

from tests.shapes.team import Team


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path)
