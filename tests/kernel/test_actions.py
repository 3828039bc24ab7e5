"""Calls of tools in the kernel: keys, and what becomes of one under every state of the record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runs.kernel import calls
from runs.kernel.action_requests import decisions_for, filled
from runs.kernel.actions import call_key, in_doubt, in_flight, step_key
from runs.kernel.calls import Call, Surroundings
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.grants import Grant
from runs.kernel.jsonable import digest_hex
from runs.kernel.slots import RunState, Slot
from runs.kernel.state import fold, is_folded

INPUT = {"channel": "linkedin", "draft_id": "d1"}
DIGEST = "a450ecaa8e2f131985c9f786d4803b054e52801169b80d8742fde3ff717dad25"
KEY = "7a2ccc7a48d9ef666359861eda78bef2e375e74aa21fa2d72c82b7598a54d5ed"
STEP = ("p", "publish")
HERE = Surroundings(principal="user:1")


def call(**facts: Any) -> Call:
    told = {
        "tool": "publish_post",
        "toolDigest": "t1",
        "effect": "external-write",
        "category": "publish",
        "policy": "policy",
        "recovery": "none",
        "risk": "medium",
        "summary": "Publish d1",
        "sensitive": (),
        "cost": 250,
        "currency": "EUR",
        "windowSeconds": 900,
        "routing": {"expiresInSeconds": 86_400, "onExpiry": "reject"},
    }
    return Call(key=KEY, input=INPUT, input_digest=DIGEST, facts=told | facts, path=STEP, mark="m1")


def state(*events: Event, number: int = 1, status: Any = "running") -> RunState:
    slots: dict[Path, Slot] = {STEP: Slot(number=number, status=status)}
    # Asking has stopped the step; by now it was started anew.
    return replace(fold(events, RunState(run_id="run1", session=1, slots=slots)), slots=slots)


def told(kind: str, ts: int = 0, **fields: Any) -> Event:
    return Event(kind, STEP, {"key": KEY, "tool": "publish_post", **fields}, ts=ts)


def asked(number: int = 1) -> list[Event]:
    verdict, _ = calls.enter(state(), call(), HERE, 0)
    assert verdict.request is not None
    routed = {**verdict.routing, "requestId": f"r{number}", "ask": number}
    return [Event(EventKind.ROUTED, STEP, routed)]


def allowed(at: int = 0, decision: str = "allow_once") -> list[Event]:
    decided = told(
        EventKind.APPROVAL_DECIDED, at, requestId="r1", decision=decision, decidedBy="user:2"
    )
    return [*asked(), decided]


def reserved(number: int = 1, recovery: str = "none", mark: str = "m0") -> Event:
    return told(
        EventKind.TOOL_RESERVED,
        inputDigest=DIGEST,
        recovery=recovery,
        number=number,
        mark=mark,
        requestId="r1",
    )


def enter(
    *events: Event,
    given: Call | None = None,
    around: Surroundings = HERE,
    now: int = 0,
    **more: Any,
) -> tuple[str, str, list[str]]:
    verdict, made = calls.enter(state(*events, **more), given or call(), around, now)
    return verdict.kind, verdict.code, [str(event.kind) for event in made]


RUN = ("run", "", ["tool.reserved"])


# --- keys ----------------------------------------------------------------------------------------


def test_the_key_of_a_call_is_the_one_of_the_vector() -> None:
    assert digest_hex(INPUT) == DIGEST
    assert call_key("t1", "run1", "publish_post", DIGEST) == KEY


def test_inputs_with_equal_short_hashes_have_different_keys() -> None:
    keys = {
        call_key("t1", "run1", "publish_post", digest_hex({"draftId": one}))
        for one in ("d562789", "d779192")
    }

    assert len(keys) == 2


def test_parts_of_a_key_do_not_run_into_each_other() -> None:
    assert call_key("t", "a:b", "c", DIGEST) != call_key("t", "a", "b:c", DIGEST)
    assert call_key("t", "r", "x", DIGEST, call_id="1") != call_key("t", "r", "x", DIGEST)
    assert step_key("a", 1, "x", DIGEST) != step_key("a", 2, "x", DIGEST)


# --- the gate ------------------------------------------------------------------------------------


def test_a_call_nobody_allowed_asks() -> None:
    assert enter() == ("ask", "", [])


def test_a_call_that_needs_nobody_is_reserved() -> None:
    assert enter(given=call(policy="never")) == RUN


def test_a_grant_lets_a_call_run_and_is_named_with_it() -> None:
    grant = Grant(
        grant_id="g1",
        scope="principal",
        match_type="tool",
        match_value="publish_post",
        principal="user:1",
    )
    around = replace(HERE, grants=[grant])
    _, made = calls.enter(state(), call(), around, 0)

    assert made[0].fields["grantId"] == "g1"
    assert enter(around=around, given=call(policy="always")) == ("ask", "", [])


def test_an_allowed_call_runs_and_its_approval_is_used() -> None:
    assert enter(*allowed()) == RUN
    after = state(*allowed(), reserved())
    assert after.actions[KEY].asks[0].used
    assert after.approvals == {}


@pytest.mark.parametrize("decision", ["allow_everything", "yes", ""])
def test_a_word_that_is_not_listed_allows_nothing(decision: str) -> None:
    kind, _, made = enter(*allowed(decision=decision))

    assert (kind, made) != ("run", ["tool.reserved"])
    assert made == []


def test_a_denied_call_is_refused_at_once_however_it_comes_back() -> None:
    denied = allowed(decision="deny")

    assert enter(*denied) == ("refused", "approval_denied", [])
    assert enter(*denied, given=replace(call(), ask=2)) == ("refused", "approval_denied", [])


@pytest.mark.parametrize(
    ("given", "around", "now", "code"),
    [
        (call(toolDigest="t2"), HERE, 0, "approval_stale"),
        (call(), replace(HERE, authorised=False), 0, "forbidden"),
        (call(), HERE, 900_000, "approval_expired"),
    ],
)
def test_what_changed_after_the_yes_runs_nothing(
    given: Call, around: Surroundings, now: int, code: str
) -> None:
    found = enter(*allowed(), given=given, around=around, now=now)

    assert found == ("refused", code, ["tool.refused"])


def test_a_yes_holds_up_to_the_instant_at_which_its_window_ends() -> None:
    assert enter(*allowed(), now=899_999) == RUN


def test_an_approval_for_ever_needs_its_policy_when_it_runs() -> None:
    always = allowed(decision="allow_always")

    assert enter(*always)[1] == "forbidden"
    assert enter(*always, around=replace(HERE, always_permitted=True)) == RUN


def test_a_key_with_another_input_is_a_conflict() -> None:
    done = [reserved(), told(EventKind.TOOL_COMPLETED, result=1)]
    other = replace(call(), input_digest="0" * 64)

    assert enter(*done, given=other) == ("refused", "idempotency_conflict", [])


def test_a_call_that_succeeded_gives_its_result_again() -> None:
    done = [reserved(), told(EventKind.TOOL_COMPLETED, result={"url": "x"})]
    verdict, made = calls.enter(state(*done), call(), HERE, 0)

    assert (verdict.kind, verdict.result, made) == ("result", {"url": "x"}, [])


@pytest.mark.parametrize(("retryable", "found"), [(False, ("failed", "down", [])), (True, RUN)])
def test_a_failure_is_final_unless_it_may_pass(retryable: bool, found: Any) -> None:
    error = {"code": "down", "message": "no", "retryable": retryable}
    failed = [*allowed(), reserved(), told(EventKind.TOOL_FAILED, error=error)]

    assert enter(*failed) == found


def test_a_call_under_way_is_left_to_whoever_makes_it() -> None:
    assert enter(*allowed(), reserved()) == ("refused", "conflict", [])


def test_a_call_whose_commit_was_not_heard_of_goes_on() -> None:
    assert enter(*allowed(), reserved(mark="m1")) == ("run", "", [])


@pytest.mark.parametrize("begun", [[], [told(EventKind.TOOL_STARTED)]])
def test_a_lost_call_goes_on_with_the_next_start(begun: list[Event]) -> None:
    lost = [*allowed(), reserved(recovery="replay"), *begun]
    verdict, made = calls.enter(state(*lost, number=2), call(recovery="replay"), HERE, 0)

    assert verdict.kind == "run"
    assert verdict.resumed == ("started" if begun else "reserved")
    assert made[0].fields["requestId"] == "r1"
    # Begun once, it stays begun: another crash must not make it look unsent.
    again = state(*lost, *made, number=2)
    assert again.actions[KEY].execution == verdict.resumed


def test_a_lost_call_that_nobody_can_look_up_is_in_doubt_once_it_was_begun() -> None:
    before = state(*allowed(), reserved())
    begun = state(*allowed(), reserved(), told(EventKind.TOOL_STARTED))

    assert in_doubt(in_flight(before, STEP)) is None
    assert in_doubt(in_flight(begun, STEP)) is begun.actions[KEY]
    lost = [*allowed(), reserved(), told(EventKind.TOOL_STARTED)]
    assert enter(*lost, number=2) == ("refused", "conflict", [])


@pytest.mark.parametrize(
    ("said", "execution"),
    [("happened", "succeeded"), ("did-not-happen", "reserved"), ("abandon", "failed")],
)
def test_what_an_operator_finds_out_settles_it(said: str, execution: str) -> None:
    in_question = [*allowed(), reserved(), told(EventKind.TOOL_STARTED)]
    in_question += [told(EventKind.TOOL_INDETERMINATE, requestId="d1")]

    assert enter(*in_question, number=2) == ("refused", "conflict", [])
    settled = replace(told(EventKind.TOOL_SETTLED), fields={"key": KEY, "as": said})
    after = state(*in_question, settled)
    assert after.actions[KEY].execution == execution


def test_a_cancelled_run_reserves_nothing() -> None:
    cancelled = [*allowed(), Event(EventKind.RUN_CANCEL)]

    assert enter(*cancelled) == ("refused", "cancelled", [])


def test_a_run_has_so_many_approvals_open_and_no_more() -> None:
    crowded = replace(state(), approvals={f"r{number}": "k" for number in range(100)})
    verdict, _ = calls.enter(crowded, call(), HERE, 0)

    assert verdict.code == "too_many_open"


def test_no_step_emits_what_the_gate_records() -> None:
    kinds = [kind for kind in EventKind if kind.startswith(("tool.", "approval.", "grant."))]

    assert len(kinds) == 12
    assert all(is_folded(kind) for kind in kinds)


# --- what is asked -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "conversation", "always", "offered"),
    [
        ("policy", "", False, ("allow_once", "deny")),
        ("policy", "c1", False, ("allow_once", "allow_conversation", "deny")),
        ("policy", "c1", True, ("allow_once", "allow_conversation", "allow_always", "deny")),
        ("always", "c1", True, ("allow_once", "deny")),
    ],
)
def test_what_may_be_decided_follows_from_the_policy(
    policy: str, conversation: str, always: bool, offered: tuple[str, ...]
) -> None:
    assert decisions_for(policy, conversation=conversation, always=always) == offered


def test_what_destroys_is_never_allowed_for_ever() -> None:
    around = replace(HERE, always_permitted=True, conversation="c1")
    verdict, _ = calls.enter(state(), call(effect="destructive"), around, 0)
    assert verdict.request is not None

    schema: Any = verdict.request.to_wire()["responseSchema"]
    enum = schema["properties"]["decision"]["enum"]
    assert enum == ["allow_once", "allow_conversation", "deny"]


def test_a_request_holds_what_will_run_and_marks_nothing_up() -> None:
    verdict, _ = calls.enter(state(), call(summary="Publish [x](y) *now*"), HERE, 0)
    assert verdict.request is not None

    assert verdict.request.input == {
        "tool": "publish_post",
        "input": INPUT,
        "risk": "medium",
        "cost": {"minorUnits": 250, "currency": "EUR"},
        "idempotencyKey": KEY,
    }
    assert verdict.request.decision_text == "Publish \\[x\\](y) \\*now\\*"


def test_a_summary_is_one_line_of_plain_text() -> None:
    given = {"a": "x\n\ny", "b": {"c": [1, 2]}, "long": "z" * 300}

    assert filled("{a} {b.c} {none}", given) == "x y [1,2] {none}"
    assert len(filled("{long}", given)) == 200
