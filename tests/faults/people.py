"""Who answers while faults happen: a yes to every approval, and the truth about lost steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from runs import claims
from runs.drivers.execute import idempotency_key
from runs.kernel.callbacks import CallbackStatus
from runs.kernel.gate import CallbackRequest
from runs.kernel.state import RunState
from runs.models import Run
from runs.stored import RecordCallbacks
from runs.turns import folding
from tests.faults import scene

WHO = "user:1"
RECONCILE = "reconcile:"
Reply = Callable[[RunState, CallbackRequest], dict[str, Any] | None]


def truth(run_id: UUID) -> Reply:
    """A yes; and of a lost step what somebody finds who looks whether its effect is there.

    Nothing of a lost step while the people are told to be patient.
    """

    def reply(state: RunState, request: CallbackRequest) -> dict[str, Any] | None:
        if not request.gate_id.startswith(RECONCILE):
            return {"approved": True}
        if scene.said("people") == "patient":
            return None
        done = is_done(run_id, state, request.input, scene.notes("effects"))
        return {"action": "finished" if done else "run-again"}

    return reply


def is_done(run_id: UUID, state: RunState, subject: Any, effects: Iterable[str]) -> bool:
    """Whether the effect of the lost step that a question is about is among these.

    `subject` is the input of the question, which names the step by its path.
    """
    return idempotency_key(str(run_id), state, tuple(subject["path"])) in effects


def answer_all(run_id: UUID, reply: Reply | None = None) -> None:
    """Reply to every open question; one that was claimed by a process that died with its token."""
    reply = reply or truth(run_id)
    client = RecordCallbacks(run_id, actor=WHO, surface="browser")
    last_seq = Run.objects.values_list("last_seq", flat=True).get(pk=run_id)
    state = folding.state_at(run_id, last_seq)
    for held in state.callbacks.requests.values():
        request = held.request
        answer = reply(state, request) if held.is_live else None
        if answer is None:
            continue
        if held.status is CallbackStatus.PENDING:
            token = client.claim(request.request_id, WHO).claim_token or ""
        else:
            token = claims.claim_token(run_id, request.request_id, str(held.claim_token), WHO)
        client.submit(request.request_id, token, WHO, request.digest, answer)
