"""Runs as this process has just seen them, so that a turn can be tried without locking its run.

What is known here may be old: a turn that is tried on it writes only where the run's row still has
the number of the last event that was known (runs/record.py).
"""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from runs.kernel.state import RunState
from runs.models import Run
from runs.turns.clock import Clock
from runs.turns.folding import Memory

# A run at which somebody else was faster is locked for so long: they will be again.
BUSY_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A run's row and its state after the same event."""

    run: Run
    state: RunState
    clock: Clock

    def row(self) -> Run:
        """A row of one's own, to be changed."""
        return copy(self.run)


_seen: Memory[UUID, Seen] = Memory()
_busy: Memory[UUID, float] = Memory()


def put(seen: Seen) -> None:
    """Keep what is committed."""
    _seen.put(seen.run.pk, seen)


def of(run_id: UUID) -> Seen | None:
    """The run as it was a moment ago; None when nothing is known, or others are at it too."""
    seen = None if is_busy(run_id) else _seen.get(run_id)
    return seen if seen is not None and seen.clock.is_fresh else None


def is_busy(run_id: UUID) -> bool:
    """Whether somebody else was faster at this run just now."""
    until = _busy.get(run_id)
    return until is not None and time.monotonic() < until


def lost(run_id: UUID) -> None:
    """Somebody else was faster."""
    _busy.put(run_id, time.monotonic() + BUSY_SECONDS)
