from __future__ import annotations

from typing import Any

import pytest

from runs.drivers.memory import run
from runs.drivers.signal import Signal
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.outcomes import Outcome, failing
from runs.shapes.approval import approval
from runs.shapes.confidence_condition import confidence_condition
from runs.shapes.dag import dag
from runs.shapes.steps import fn_job, gate_job


def judged(value: Any, **options: Any) -> Outcome:
    job = fn_job("score", lambda _ctx: value)
    return run(gate_job("gate", confidence_condition(job, **options))).outcome


@pytest.mark.parametrize(
    ("text", "met", "confidence"),
    [
        ("good\nconfidence: 0.9", True, 0.9),
        ("good\nconfidence: 80%", True, 0.8),
        ("good\n<confidence>79%</confidence>", False, 0.79),
        ("good", False, 0.0),
        ("confidence: n/a", False, 0.0),
    ],
)
def test_r100_it_gates_on_the_confidence_in_the_text(
    text: str, met: bool, confidence: float
) -> None:
    outcome = judged(text)

    assert outcome.passed is met
    assert outcome.confidence == pytest.approx(confidence)


def test_r100_the_data_is_read_before_the_summary() -> None:
    both = Outcome(status="pass", summary="confidence: 0.1", data="confidence: 0.9")

    assert judged(both).passed


def test_r100_only_a_job_that_passed_can_convince() -> None:
    outcome = judged(Outcome(status="fail", summary="confidence: 1"))

    assert not outcome.passed
    assert outcome.data == "confidence: 1"


def test_r100_percent_reads_its_threshold_so() -> None:
    assert judged("confidence: 85", scale="percent").passed
    assert not judged("confidence: 85", scale="percent", threshold=90).passed
    assert judged("confidence: 0.3", threshold=0.3).passed


def test_r100_another_token_and_the_full_reason() -> None:
    text = f"{'word ' * 100}\nscore: 90%"

    assert len(str(judged(text, token="score").summary)) == 280
    assert judged(text, token="score", reason="full").summary == text


def test_r100_not_applicable_counts_only_where_it_is_allowed_and_passed() -> None:
    assert judged("confidence: N/A", allow_na=True).confidence == 1.0
    failed = Outcome(status="fail", summary="confidence: n/a")
    assert not judged(failed, allow_na=True).passed


@pytest.mark.parametrize("code", ["ENGINE", "TIMEOUT", "RATE_LIMIT", "QUOTA", "BUDGET"])
@pytest.mark.parametrize("raises", [True, False])
def test_r100_infrastructure_errors_are_raised(code: str, raises: bool) -> None:
    error = LoopError(code, "away", retry_after_ms=7)

    def work(_ctx: Any) -> Any:
        if raises:
            raise error
        return failing(error)

    gate = gate_job("gate", confidence_condition(fn_job("score", work)))
    outcome = run(gate, on_limit="fail").outcome
    assert outcome.error is not None
    assert outcome.error["code"] == code
    assert outcome.error["retryAfterMs"] == 7


def test_r100_a_cancel_is_raised() -> None:
    signal = Signal()

    def work(_ctx: Any) -> str:
        signal.set()
        return "confidence: 1"

    job = gate_job("gate", confidence_condition(fn_job("score", work)))
    assert run(job, signal=signal).outcome.status == "aborted"
    assert judged(Outcome(status="aborted", summary="cut")).status == "aborted"


def test_r100_a_job_that_breaks_is_not_met() -> None:
    def broken(_ctx: Any) -> None:
        raise ValueError("confidence: 1")

    outcome = run(gate_job("gate", confidence_condition(broken))).outcome
    assert outcome.error is None
    assert not outcome.passed


def test_the_job_reads_the_outcome_that_is_judged() -> None:
    seen: list[Any] = []

    def score(ctx: Any) -> str:
        seen.append(ctx.last_outcome)
        return "confidence: 1"

    last = Outcome(status="pass", summary="built")
    condition = confidence_condition(score)
    run(gate_job("x", lambda ctx, _last: condition(ctx, last)))
    assert seen == [last]


def test_a_condition_waits_for_no_person() -> None:
    ask = approval("ok", "Sure?", input=lambda _ctx: 1)
    outcome = run(gate_job("gate", confidence_condition(ask))).outcome

    assert outcome.error is not None
    assert outcome.error["code"] == "VALIDATION"


@pytest.mark.parametrize(
    "options",
    [
        {"scale": "inches"},
        {"reason": "long"},
        {"threshold": 1.1},
        {"threshold": -1},
        {"threshold": "0.5"},
        {"scale": "percent", "threshold": 101},
        {"token": " "},
        {"job": dag("g", {"a": print})},
        {"job": 3},
    ],
)
def test_what_cannot_be_is_refused_when_declared(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        confidence_condition(**{"job": fn_job("score", print), **options})
