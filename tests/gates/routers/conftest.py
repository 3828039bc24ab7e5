"""The service that the tests of routers ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gates.routers.service import Service, serving


@pytest.fixture(autouse=True)
def private(settings: Any) -> None:
    """The service of these tests is on this machine."""
    settings.OBVERSA_NOTIFY_PRIVATE = True


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as made:
        yield made
