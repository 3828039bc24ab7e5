from __future__ import annotations

from typing import Any

from runs.kernel import callbacks
from runs.kernel.callbacks import CallbackState, WireEvent
from tests.kernel.questions import question

A = question()
B = question(input={"revision": "def456"})
OTHER = question(gate_id="other")


def asked(*requests: Any) -> CallbackState:
    state = callbacks.empty()
    for request in requests:
        state = callbacks.fold_all(state, callbacks.post(state, request))
    return state


def claimed(request: Any = A, router_id: str = "r", token: str = "t") -> CallbackState:
    state = asked(request)
    _, events = callbacks.claim(state, request.request_id, router_id, token)
    return callbacks.fold_all(state, events)


def answer(state: CallbackState, **changes: Any) -> tuple[Any, list[WireEvent]]:
    given = {
        "claim_token": "t",
        "router_id": "r",
        "request_digest": A.digest,
        "response": {"approved": True},
        **changes,
    }
    return callbacks.submit(state, A.request_id, **given)


def answered() -> CallbackState:
    state = claimed()
    return callbacks.fold_all(state, answer(state)[1])


def superseded_a() -> CallbackState:
    return asked(A, B)
