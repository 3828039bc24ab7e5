"""What an answer led to: the run went on, will go on later, or waits for somebody to resume it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from gates import columns
from gates.models import Request
from runs.kernel.actions import ACTION
from runs.kernel.clocks import iso
from runs.kernel.state import RunState
from runs.models import Run

Next = Literal["resumed", "recorded"] | dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """An answer as it was recorded; `settled` once the question has its own."""

    request_pk: UUID
    response: Any
    seq: int
    at: datetime
    actor: str
    next: Next
    needed: int = 1
    responded: int = 1
    settled: bool = True
    already_resolved: bool = False


def next_of(row: Request, run: Run, state: RunState) -> Next:
    """Which of the three happened (design D4): looked up in the state, not guessed.

    The step that asked still waits on this very question, or it has gone on.
    """
    asker = state.slots.get(tuple(row.step_path))
    if run.kind == Run.Kind.EXTERNAL or asker is None:
        return "recorded"
    if row.routing.get("purpose") == ACTION:
        # Its step goes on when all that it asked together is decided (interactions.md I39).
        is_open = columns.true_id(row, state.callbacks.requests) in state.approvals
        return "recorded" if is_open or asker.status == "asking" else "resumed"
    if not asker.request_id:
        # A step that runs once more with its answer has forgotten what it asked.
        goes_on = "purpose" in row.routing and asker.status in ("queued", "running")
        return "resumed" if goes_on else "recorded"
    waits = asker.status == "asking" and asker.request_id == columns.true_id(
        row, state.callbacks.requests
    )
    if not waits:
        return "resumed"
    if state.waits and run.status == Run.Status.RETRY_PENDING:
        return {"resumesAt": iso(min(state.waits.values()))}
    return "recorded"
