from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.conditions import (
    Condition,
    ConditionResult,
    always,
    describe_conditions,
    evaluate,
    is_data,
    never,
    passed,
    predicate,
)
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.judging import (
    OtherVoice,
    OutOfRange,
    body_passed,
    bucket_of,
    last_gate_brief,
    min_confidence,
    quorum,
    sampled,
)
from runs.kernel.outcomes import Outcome

CTX = SimpleNamespace(needs={}, path=("a", "b"), iteration=2)


def says(met: bool, **more: Any) -> Condition:
    return predicate(lambda _ctx, _last: ConditionResult(met=met, **more), "says")


def raises(error: Exception) -> Condition:
    def check(_ctx: Any, _last: Any) -> bool:
        raise error

    return predicate(check, "raises")


@pytest.mark.parametrize(
    ("last", "met"),
    [
        (Outcome(status="pass", confidence=0.5), True),
        (Outcome(status="fail"), False),
        (Outcome(status="exhausted"), False),
        (None, False),
    ],
)
def test_r87_body_passed_reads_the_last_outcome(last: Outcome | None, met: bool) -> None:
    assert body_passed()(CTX, last).met is met
    assert evaluate(body_passed().shape, {}, last).met is met
    assert is_data(body_passed().shape)


@pytest.mark.parametrize(("confidence", "met"), [(0.8, True), (0.79, False), (None, False)])
def test_r87_min_confidence_counts_an_absent_one_as_zero(
    confidence: float | None, met: bool
) -> None:
    last = Outcome(status="fail", confidence=confidence)
    result = min_confidence(0.8)(CTX, last)

    assert (result.met, result.confidence) == (met, confidence or 0.0)
    assert evaluate(min_confidence(0.8).shape, {}, last) == result
    assert min_confidence(0)(CTX, None).met


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "0.5", None, True, float("nan")])
def test_min_confidence_takes_a_share(threshold: Any) -> None:
    with pytest.raises(DeclarationError):
        min_confidence(threshold)


def test_r91_a_quorum_is_met_when_k_hold() -> None:
    result = quorum(2, says(True, confidence=0.6), says(False), says(True, confidence=0.8))(CTX)

    assert result.met
    assert result.confidence == pytest.approx(0.7)
    assert result.reason == "2 of 3 hold, 2 needed"


def test_r91_a_missed_quorum_says_who_was_against_it() -> None:
    result = quorum(
        2, says(True), says(False, reason="red", output="3 failed"), raises(KeyError("k"))
    )(CTX)

    assert (result.met, result.output) == (False, "3 failed")
    assert result.reason == "1 of 3 hold, 2 needed: red; 'k'"


def test_r91_a_quorum_of_data_is_data() -> None:
    met = quorum(1, always, never, passed("gone"))

    assert is_data(met.shape)
    assert evaluate(met.shape, {}).met
    assert evaluate(met.shape, {}) == met(CTX)
    assert not is_data(quorum(1, always, says(True)).shape)


def test_r91_all_inputs_run_at_once_where_the_context_can() -> None:
    asked: list[int] = []

    def side_by_side(calls: list[Any]) -> list[Any]:
        asked.append(len(calls))
        return [call() for call in calls]

    ctx = SimpleNamespace(needs={}, side_by_side=side_by_side)
    assert quorum(1, says(False), says(True), says(True))(ctx).met
    assert asked == [3]


@pytest.mark.parametrize("k", [0, 3, -1, True, 1.0, "1", None])
def test_r91_a_count_that_cannot_be_reached_is_refused_when_declared(k: Any) -> None:
    with pytest.raises(DeclarationError, match="from 1 to 2") as refused:
        quorum(k, always, never)

    assert refused.value.code == "CONFIG"


@pytest.mark.parametrize("code", ["ENGINE", "TIMEOUT", "RATE_LIMIT", "QUOTA", "BUDGET"])
def test_r92_an_infrastructure_error_that_could_have_decided_is_raised(code: str) -> None:
    error = LoopError(code, "away")
    vote = quorum(2, says(True), says(False, output="because"), raises(error))

    with pytest.raises(LoopError, match="away") as raised:
        vote(CTX)

    assert raised.value is error
    assert isinstance(raised.value.__cause__, OtherVoice)
    assert str(raised.value.__cause__) == "because"


def test_r92_one_that_could_not_have_decided_is_a_no() -> None:
    away = raises(LoopError("ENGINE", "away"))

    assert not quorum(3, says(True), says(False), away)(CTX).met
    assert quorum(1, says(True), away)(CTX).met
    assert not quorum(1, says(False), raises(LoopError("CONFIG", "odd")))(CTX).met


def test_r93_the_bucket_is_the_start_of_the_digest() -> None:
    first = int.from_bytes(hashlib.sha256(b"a/b:2").digest()[:4], "big")

    assert bucket_of("a/b:2") == first / (2**32 - 1)
    assert bucket_of("a/b:2") == pytest.approx(0.2547294, abs=1e-7)


def test_r93_outside_the_sample_it_is_met_without_a_look() -> None:
    bucket = bucket_of("a/b:2")

    assert sampled(bucket, raises(KeyError()))(CTX).met
    with pytest.raises(KeyError):
        sampled(bucket + 1e-9, raises(KeyError()))(CTX)


@pytest.mark.parametrize("key", ["ticket-7", lambda ctx: f"ticket-{len(ctx.path) + 5}"])
def test_r93_a_key_of_its_own_decides(key: Any) -> None:
    ctx = SimpleNamespace(**vars(CTX), call=lambda fn, *args: fn(*args or (CTX,)))
    edge = bucket_of("ticket-7")

    assert sampled(edge, never, key=key)(ctx).met
    assert not sampled(min(1, edge + 1e-9), never, key=key)(ctx).met


@given(st.text(), st.floats(0, 1))
def test_r93_same_key_same_side(key: str, rate: float) -> None:
    first, again = (sampled(rate, never, key=key)(CTX).met for _ in range(2))

    assert first is again
    assert first is (bucket_of(key) >= rate)


@pytest.mark.parametrize("rate", [-0.01, 1.01, None, True, "1"])
def test_r93_a_rate_outside_its_range_is_refused(rate: Any) -> None:
    with pytest.raises(OutOfRange) as refused:
        sampled(rate, always)

    assert isinstance(refused.value, ValueError)
    assert refused.value.code == "CONFIG"


def test_r234_arguments_are_part_of_a_conditions_identity() -> None:
    made = [sampled(0.5, always), sampled(0.6, always), sampled(0.5, never)]
    made += [sampled(0.5, always, key="k"), quorum(1, always, never), quorum(2, always, never)]
    shapes = [str(item.shape) for item in made]

    assert len(set(shapes)) == len(made)
    assert str(sampled(0.5, always).shape) == shapes[0]


def test_r105_labels_name_what_is_inside() -> None:
    given = [body_passed(), min_confidence(0.5), quorum(1, passed("a")), sampled(0.25, says(True))]

    assert describe_conditions(given) == [
        "body passed",
        "confidence at least 0.5",
        "quorum(1, passed(a))",
        "sampled(0.25, says)",
    ]


def test_r103_the_brief_is_empty_without_a_failed_gate() -> None:
    for gate in (None, ConditionResult(met=True, reason="fine", output="x")):
        assert last_gate_brief(SimpleNamespace(last_gate=gate)) == ""


def test_r103_the_brief_holds_reason_and_cut_output() -> None:
    ctx = SimpleNamespace(last_gate=ConditionResult(met=False, reason="red", output="x" * 30))

    assert last_gate_brief(ctx, max_output_chars=10) == (
        "The last check was not met: red\nxxxxxxxxxx\n[20 characters cut]"
    )
    bare = SimpleNamespace(last_gate=ConditionResult(met=False, reason="red"))
    assert last_gate_brief(bare) == "The last check was not met: red"
