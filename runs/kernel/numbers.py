"""Numbers out of JSON that somebody else wrote."""

from __future__ import annotations

import math
from typing import Final

_LARGEST: Final = 1e18


def number_of(value: object) -> int | float | None:
    """The value if it is a number of a size that means something."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and abs(value) < _LARGEST else None


def count_of(value: object) -> int:
    """A number of things, 0 for what is none."""
    number = number_of(value)
    return 0 if number is None or number < 0 else int(number)


def amount_of(value: object) -> float | None:
    """An amount that is not negative, None for what is none."""
    number = number_of(value)
    return None if number is None or number < 0 else float(number)
