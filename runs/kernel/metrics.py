"""A number out of what a command printed (runs.md R94)."""

from __future__ import annotations

import json
import math


def metric_in(text: str, name: str) -> float | None:
    """The number in the last line that is a JSON object: `{"metrics": {name: n}}` or `{name: n}`.

    None when there is no such line, no such number, or it is not finite.
    """
    for line in reversed(text.splitlines()):
        if not line.strip().startswith("{"):
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            inner = found.get("metrics")
            return _number((inner if isinstance(inner, dict) else found).get(name))
    return None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
