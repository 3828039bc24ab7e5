from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.kernel import callbacks
from runs.kernel.callback_events import read_event
from runs.kernel.callbacks import CallbackSequenceError, CallbackState, WireEvent
from runs.kernel.jsonable import canonical_json, parse_json
from tests.kernel.held import OTHER, A, B, answered, asked, claimed, superseded_a
from tests.kernel.questions import question


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"kind": f"callback-{kind}", "requestId": A.request_id, **fields}


SUBMITTED = event("submitted", requestDigest=A.digest, routerId="r", response={"approved": True})
REQUESTED = {"kind": "callback-requested", "request": A.to_wire()}


@pytest.mark.parametrize(
    ("state", "impossible"),
    [
        (asked(A), REQUESTED),
        (claimed(), REQUESTED),
        (answered(), REQUESTED),
        (callbacks.empty(), event("claimed", routerId="r", claimToken="t")),
        (claimed(), event("claimed", routerId="r", claimToken="t")),
        (answered(), event("claimed", routerId="r", claimToken="t")),
        (asked(A), event("released", routerId="r")),
        (claimed(), event("released", routerId="s")),
        (asked(A), event("rejected", routerId="r", reason="x")),
        (claimed(), event("rejected", routerId="s", reason="x")),
        (asked(A), SUBMITTED),
        (answered(), SUBMITTED),
        (claimed(), {**SUBMITTED, "routerId": "s"}),
        (claimed(), {**SUBMITTED, "requestDigest": "0" * 64}),
        (claimed(), {**SUBMITTED, "response": {"approved": "yes"}}),
        (claimed(), {**SUBMITTED, "response": []}),
        (callbacks.empty(), event("superseded", supersededBy="x")),
        (answered(), event("superseded", supersededBy="x")),
        (superseded_a(), event("superseded", supersededBy="x")),
    ],
)
def test_an_event_that_cannot_have_happened_is_refused(
    state: CallbackState, impossible: dict[str, Any]
) -> None:
    with pytest.raises(CallbackSequenceError) as refused:
        callbacks.fold(state, impossible)

    assert refused.value.code == "CALLBACK_SEQUENCE"


@pytest.mark.parametrize(
    "malformed",
    [
        None,
        [],
        {},
        {"kind": "callback-guessed", "requestId": "x"},
        {"kind": ["callback-claimed"]},
        {**REQUESTED, "at": 1},
        {"kind": "callback-requested", "request": None},
        {"kind": "callback-requested", "request": {**A.to_wire(), "decisionText": "Sure?"}},
        event("claimed", routerId="r"),
        event("claimed", routerId="", claimToken="t"),
        event("claimed", routerId="r", claimToken=1),
        event("released", routerId="r", at=1),
        event("rejected", routerId="r", reason=""),
        event("superseded", supersededBy=None),
        {**SUBMITTED, "requestDigest": A.digest.upper()},
        {**SUBMITTED, "requestDigest": A.digest + "\n"},
        {**SUBMITTED, "response": object()},
    ],
)
def test_a_malformed_event_is_refused(malformed: Any) -> None:
    with pytest.raises(ValueError, match=r"\.$") as refused:
        callbacks.fold(claimed(OTHER), malformed)

    assert not isinstance(refused.value, CallbackSequenceError)


def test_the_fold_does_not_care_what_a_token_says() -> None:
    state = asked(A)

    state = callbacks.fold(state, event("claimed", routerId="r", claimToken="kept elsewhere"))

    assert state.requests[A.request_id].claim_token == "kept elsewhere"


def test_a_state_cannot_be_changed_through_what_it_hands_out() -> None:
    state = claimed()

    with pytest.raises(TypeError):
        state.requests["x"] = state.requests[A.request_id]  # type: ignore[index]  # on purpose
    with pytest.raises(FrozenInstanceError):
        state.requests[A.request_id].router_id = "s"  # type: ignore[misc]  # on purpose


def test_a_history_that_fails_halfway_leaves_the_state_as_it_was() -> None:
    state = callbacks.empty()

    with pytest.raises(CallbackSequenceError):
        callbacks.fold_all(state, [REQUESTED, SUBMITTED])

    assert state == callbacks.empty()


def test_a_stored_question_with_a_malformed_schema_refuses_every_answer() -> None:
    from runs.kernel.jsonable import digest_hex

    wire = {**A.to_wire(), "responseSchema": {"required": "approved"}}
    named = ("gateId", "gateVersion", "decisionText", "responseSchema", "input")
    wire["digest"] = digest_hex({name: wire[name] for name in named})
    wire["requestId"] = f"release-approval#1#{wire['digest']}"
    state = asked(wire)
    state = callbacks.fold_all(state, callbacks.claim(state, str(wire["requestId"]), "r", "t")[1])

    result, _ = callbacks.submit(
        state,
        str(wire["requestId"]),
        claim_token="t",
        router_id="r",
        request_digest=str(wire["digest"]),
        response={"approved": True},
    )

    assert (result.kind, result.reason) == ("invalid", "The schema's required is not a list.")


moves = st.lists(
    st.tuples(
        st.sampled_from(["post", "claim", "submit", "release", "supersede"]),
        st.sampled_from([A, B, question(gate_version=2), OTHER]),
        st.sampled_from(["r", "s"]),
        st.sampled_from([{"approved": True}, {"approved": 1}, None]),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(moves)
def test_replaying_the_history_of_any_moves_gives_the_same_state(moves: list[Any]) -> None:
    state, history = callbacks.empty(), list[WireEvent]()
    for number, (move, request, router, response) in enumerate(moves):
        held = state.get(request.request_id)
        token = str(held and held.claim_token)
        made: list[WireEvent]
        match move:
            case "post":
                made = callbacks.post(state, request)
            case "claim":
                _, made = callbacks.claim(state, request.request_id, router, f"t{number}")
            case "submit":
                _, made = callbacks.submit(
                    state,
                    request.request_id,
                    claim_token=token,
                    router_id=router,
                    request_digest=request.digest,
                    response=response,
                )
            case "release":
                _, made = callbacks.release(state, request.request_id, token)
            case _:
                made = callbacks.supersede(state, request.request_id, B.request_id)
        for one in made:
            assert read_event(one) is one
            state = callbacks.fold(state, one)
        history += made
        live = [held.request.gate_id for held in state.requests.values() if held.is_live]
        assert len(live) == len(set(live))

    stored = [parse_json(canonical_json(one)) for one in history]
    assert callbacks.fold_all(callbacks.empty(), stored) == state
