"""The token budget of a run of the service: what is set aside for its calls is in its record.

The check and the setting aside are one turn, so steps on any number of workers never spend the same
tokens (runs.md R269).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from runs import record
from runs.attempts.steady import steadily
from runs.drivers.budget import Budget
from runs.kernel.errors import LoopError
from runs.kernel.events import EventKind

if TYPE_CHECKING:
    from runs.attempts.starts import Start

LOOK_SECONDS: Final = 0.1


@contextmanager
def call(start: Start, budget: Budget, at_most: int | None) -> Iterator[None]:
    """A call of an engine that uses `at_most` tokens, if that is known.

    One that finds no room beside others waits for them; raises LoopError BUDGET when nothing is
    left, and ABORTED when the step is cancelled or lost meanwhile.
    """
    mark = secrets.token_hex(8)
    while not steadily(lambda: _set_aside(start, budget, mark, budget.need(at_most))):
        if start.signal.wait(LOOK_SECONDS):
            raise LoopError("ABORTED", "cancelled before an engine was asked.", phase="engine")
    try:
        yield
    finally:
        if not budget.soft:
            start.emit(EventKind.TOKENS_FREED, start.path, {"call": mark})


def _set_aside(start: Start, budget: Budget, mark: str, need: int) -> bool:
    """Whether the call may begin; its tokens are set aside then, under this start's lease."""
    with record.turn(start.due.run_id, surface="worker") as turn:
        start.need_lease()
        state = turn.state
        if budget.soft:
            budget.warn(state.spent_in_all)
            return True
        if mark in state.set_aside:
            # An earlier try was committed, and its answer lost.
            return True
        if not budget.has_room(
            state.spent_in_all, sum(count for _, count in state.set_aside.values())
        ):
            return False
        budget.check(state.spent_in_all)
        turn.append(EventKind.TOKENS_SET_ASIDE, start.path, {"call": mark, "tokens": need})
    return True
