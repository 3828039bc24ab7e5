"""What a round of a loop costs, at its beginning and at its end."""

from __future__ import annotations

from typing import Any

LOOP = "loop"
ROUNDS = 500
WINDOW = 50


def round_costs(run: Any) -> list[tuple[str, str]]:
    """Milliseconds per round of a finished loop, by its record: the first ones and the last."""
    from runs.models import Event

    began = list(
        Event.objects.filter(run=run, kind="loop:iteration")
        .order_by("seq")
        .values_list("at", flat=True)
    )
    found = []
    base = 0.0
    for first in (0, ROUNDS - WINDOW - 1):
        span = (began[first + WINDOW] - began[first]).total_seconds()
        each = span / WINDOW * 1000
        base = base or each
        found.append(
            (f"rounds {first + 1} to {first + WINDOW}", f"{each:.1f} ms ({each / base:.2f}x)")
        )
    return found
