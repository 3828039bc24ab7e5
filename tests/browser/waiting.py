"""Waiting for what has no place on a page to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tests.browser.conftest import PATIENCE_MS

T = TypeVar("T")


def until(look: Callable[[], T | None]) -> T:
    """What the product has brought about by now, once it has."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while (found := look()) is None:
        assert time.monotonic() < end, "The product has not come so far."
        time.sleep(0.05)
    return found
