from __future__ import annotations

from typing import Any

import pytest

from runs.kernel import callbacks
from runs.kernel.callbacks import CallbackState, WireEvent
from runs.kernel.jsonable import JsonValueError
from tests.kernel.held import OTHER, A, B, answer, answered, asked, claimed, superseded_a
from tests.kernel.questions import question


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
