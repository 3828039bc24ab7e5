from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.kernel import callbacks
from runs.kernel.callback_events import read_event
from runs.kernel.callbacks import CallbackSequenceError, CallbackState, WireEvent
from runs.kernel.jsonable import JsonValueError, canonical_json, parse_json
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


def kinds(events: list[WireEvent]) -> list[Any]:
    return [event["kind"] for event in events]


def status(state: CallbackState, request: Any = A) -> str:
    return state.requests[request.request_id].status.value


def test_posting_records_the_question_and_makes_it_pending() -> None:
    events = callbacks.post(callbacks.empty(), A)

    assert events == [{"kind": "callback-requested", "request": A.to_wire()}]
    assert callbacks.fold_all(callbacks.empty(), events).pending() == [A]


def test_an_operation_changes_nothing_by_itself() -> None:
    state = asked(A)

    callbacks.post(state, B)
    callbacks.claim(state, A.request_id, "r", "t")
    callbacks.supersede(state, A.request_id, "x")

    assert state == asked(A)


def test_posting_supersedes_the_gates_other_live_questions_in_first_posted_order() -> None:
    first, second, third = (question(input=n) for n in range(3))
    state = asked(first)
    for request in (second, third):
        event = {"kind": "callback-requested", "request": request.to_wire()}
        state = callbacks.fold(state, event)
    state = callbacks.fold_all(state, callbacks.claim(state, second.request_id, "r", "t")[1])

    events = callbacks.post(state, question(gate_version=2))

    assert [event.get("requestId") for event in events[:-1]] == [
        first.request_id,
        second.request_id,
        third.request_id,
    ]
    assert kinds(events) == ["callback-superseded"] * 3 + ["callback-requested"]


def test_questions_of_other_gates_and_answered_ones_are_left_alone() -> None:
    state = answered()
    state = callbacks.fold_all(state, callbacks.post(state, OTHER))

    assert kinds(callbacks.post(state, B)) == ["callback-requested"]


def test_posting_a_live_question_again_records_nothing_and_keeps_how_it_was_shown() -> None:
    dark = question(presentation={"theme": "dark"})

    assert callbacks.post(asked(A), dark) == []
    assert callbacks.post(claimed(), dark) == []
    assert callbacks.post(answered(), dark) == []
    assert asked(A, dark).pending()[0].presentation == {}


def test_posting_an_answered_question_still_supersedes_the_gates_live_one() -> None:
    state = answered()
    state = callbacks.fold_all(state, callbacks.post(state, B))

    state = callbacks.fold_all(state, callbacks.post(state, A))

    assert (status(state), status(state, B)) == ("answered", "superseded")
    assert state.pending() == []


def test_a_superseded_question_opens_again_in_its_first_place_and_unclaimed() -> None:
    state = claimed()
    state = callbacks.fold_all(state, callbacks.post(state, OTHER))
    state = callbacks.fold_all(state, callbacks.post(state, B))
    events = callbacks.post(state, question(presentation={"theme": "dark"}))
    state = callbacks.fold_all(state, events)

    assert kinds(events) == ["callback-superseded", "callback-requested"]
    assert state.pending() == [A, OTHER]
    assert state.requests[A.request_id].claim_token is None
    assert answer(state)[0].kind == "not-claimed"


def test_a_posted_request_is_validated() -> None:
    with pytest.raises(ValueError, match="changed after"):
        callbacks.post(callbacks.empty(), {**A.to_wire(), "decisionText": "Anything?"})


def test_a_claim_records_who_and_returns_its_token() -> None:
    result, events = callbacks.claim(asked(A), A.request_id, "r", "t")

    assert result.to_wire() == {"ok": True, "claimToken": "t"}
    assert events == [
        {
            "kind": "callback-claimed",
            "requestId": A.request_id,
            "routerId": "r",
            "claimToken": "t",
        }
    ]


@pytest.mark.parametrize(
    ("state", "kind", "router"),
    [
        (callbacks.empty(), "missing", None),
        (claimed(), "claimed", "r"),
        (answered(), "answered", None),
        (superseded_a(), "superseded", None),
    ],
)
def test_a_claim_is_refused_unless_the_question_is_pending(
    state: CallbackState, kind: str, router: str | None
) -> None:
    for router_id in ("r", "s"):
        result, events = callbacks.claim(state, A.request_id, router_id, "new")

        assert result.to_wire() == {"ok": False, "kind": kind, "routerId": router}
        assert events == []


def test_a_router_without_a_name_raises() -> None:
    with pytest.raises(ValueError, match="router_id"):
        callbacks.claim(asked(A), A.request_id, "", "t")


@pytest.mark.parametrize(
    ("state", "changes", "kind", "says"),
    [
        (callbacks.empty(), {}, "missing", "release-approval"),
        (superseded_a(), {"claim_token": "x"}, "stale", "superseded"),
        (asked(A), {}, "not-claimed", "pending"),
        (answered(), {}, "not-claimed", "answered"),
        (claimed(), {"claim_token": "x", "request_digest": "x"}, "not-owner", ""),
        (claimed(), {"claim_token": None}, "not-owner", ""),
        (claimed(), {"claim_token": "\ud800"}, "not-owner", ""),
        (claimed(), {"router_id": "s", "response": []}, "not-owner", ""),
        (claimed(), {"request_digest": "0" * 64, "response": []}, "stale", "digest"),
    ],
)
def test_a_submit_out_of_turn_is_refused_and_leaves_no_event(
    state: CallbackState, changes: dict[str, Any], kind: str, says: str
) -> None:
    result, events = answer(state, **changes)

    assert (result.ok, result.kind, events) == (False, kind, [])
    assert says in str(result.reason)


def test_a_wrong_answer_is_recorded_as_rejected_and_the_claim_stays() -> None:
    state = claimed()
    wrong = [{}, {"approved": 1}, {"approved": None}, {"approved": "true"}, [], None]
    seen: list[Any] = []
    for response in wrong:
        result, events = answer(state, response=response)
        assert result.kind == "invalid"
        assert events[0]["reason"] == result.reason
        assert set(events[0]) == {"kind", "requestId", "routerId", "reason"}
        state = callbacks.fold_all(state, events)
        seen += kinds(events)

    result, events = answer(state, response={"approved": True, "zzz": 1})

    assert seen == ["callback-rejected"] * 6
    assert result.to_wire() == {"ok": True, "response": {"approved": True, "zzz": 1}}
    state = callbacks.fold_all(state, events)
    assert state.requests[A.request_id].response == {"approved": True, "zzz": 1}


@pytest.mark.parametrize("response", [{"approved": float("nan")}, object(), {"n": 2**53 + 1}])
def test_a_response_that_is_not_json_raises(response: Any) -> None:
    with pytest.raises(JsonValueError):
        answer(claimed(), response=response)


def test_a_released_question_is_pending_and_its_old_token_is_dead() -> None:
    state = claimed()
    result, events = callbacks.release(state, A.request_id, "t")
    state = callbacks.fold_all(state, events)

    assert result.to_wire() == {"ok": True}
    assert events == [{"kind": "callback-released", "requestId": A.request_id, "routerId": "r"}]
    assert answer(state)[0].kind == "not-claimed"
    state = callbacks.fold_all(state, callbacks.claim(state, A.request_id, "s", "t2")[1])
    assert answer(state)[0].kind == "not-owner"


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (callbacks.empty(), "missing"),
        (asked(A), "not-owner"),
        (answered(), "not-owner"),
        (superseded_a(), "not-owner"),
        (claimed(token="another"), "not-owner"),
    ],
)
def test_a_release_without_the_claim_is_refused(state: CallbackState, kind: str) -> None:
    result, events = callbacks.release(state, A.request_id, "t")

    assert result.to_wire() == {"ok": False, "kind": kind}
    assert events == []


def test_superseding_kills_a_claim() -> None:
    state = claimed()
    state = callbacks.fold_all(state, callbacks.post(state, B))

    assert answer(state)[0].kind == "stale"
    assert callbacks.release(state, A.request_id, "t")[0].kind == "not-owner"
    refused, _ = callbacks.claim(state, A.request_id, "s", "t2")
    assert (refused.kind, refused.router_id) == ("superseded", None)
    assert state.requests[A.request_id].superseded_by == B.request_id


@pytest.mark.parametrize("state", [callbacks.empty(), answered(), superseded_a()])
def test_superseding_what_is_not_live_does_nothing(state: CallbackState) -> None:
    assert callbacks.supersede(state, A.request_id, "x") == []


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
