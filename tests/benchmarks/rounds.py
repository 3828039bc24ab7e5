"""What a round of a loop costs, at its beginning and at its end."""

from __future__ import annotations

from typing import Any

LOOP = "loop"
ROUNDS = 500
WINDOW = 50


def round_costs(run: Any) -> list[tuple[str, float]]:
    """Milliseconds per round of a finished loop, by its record: the first ones and the last."""
    from runs.models import Event

    began = list(
        Event.objects.filter(run=run, kind="loop:iteration")
        .order_by("seq")
        .values_list("at", flat=True)
    )
    found = []
    for first in (0, ROUNDS - WINDOW - 1):
        span = (began[first + WINDOW] - began[first]).total_seconds()
        found.append((f"a round, {first + 1} to {first + WINDOW}", span / WINDOW * 1000))
    return found
