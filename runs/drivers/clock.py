"""The time of this process, as events carry it."""

from __future__ import annotations

import time


def now() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
