from __future__ import annotations

import copy
import pickle

import pytest

from runs.kernel.errors import (
    INFRASTRUCTURE,
    LIMITS,
    DeclarationError,
    EngineError,
    ErrorCode,
    LoopError,
    as_loop_error,
)


def test_codes_are_those_of_the_contract() -> None:
    codes = [str(code) for code in ErrorCode]

    assert codes == [
        "ENGINE",
        "TIMEOUT",
        "ABORTED",
        "VALIDATION",
        "WRITE_BOUNDARY",
        "CONFIG",
        "BUDGET",
        "RATE_LIMIT",
        "QUOTA",
        "BODY",
        "UNKNOWN",
    ]


@pytest.mark.parametrize("code", list(ErrorCode))
def test_only_what_a_second_try_may_mend_is_retryable(code: str) -> None:
    assert LoopError(code, "x").retryable is (code in ("ENGINE", "TIMEOUT", "RATE_LIMIT"))


def test_a_quota_is_retryable_once_its_end_is_known() -> None:
    assert LoopError("QUOTA", "x", retry_after_ms=0).retryable
    assert LoopError("QUOTA", "x", reset_at=5).retryable


@pytest.mark.parametrize("explicit", [True, False])
def test_an_explicit_retryable_wins(explicit: bool) -> None:
    assert LoopError("BODY", "x", retryable=explicit).retryable is explicit
    assert LoopError("ENGINE", "x", retryable=explicit).retryable is explicit


def test_json_form_names_only_what_is_known_and_never_the_cause() -> None:
    error = LoopError("BODY", "broke", cause=ValueError("why"))

    assert error.to_json() == {
        "name": "LoopError",
        "code": "BODY",
        "message": "broke",
        "retryable": False,
    }
    assert isinstance(error.__cause__, ValueError)


def test_json_form_carries_place_and_hints() -> None:
    error = LoopError(
        "QUOTA", "x", phase="engine", path=("g", "a"), iteration=2, retry_after_ms=5, reset_at=9
    )

    assert error.to_json() == {
        "name": "LoopError",
        "code": "QUOTA",
        "message": "x",
        "phase": "engine",
        "path": ["g", "a"],
        "iteration": 2,
        "retryable": True,
        "retryAfterMs": 5,
        "resetAt": 9,
    }


@pytest.mark.parametrize(("code", "phase"), [("NOPE", None), ("BODY", "middle")])
def test_an_unknown_code_or_phase_is_refused(code: str, phase: str | None) -> None:
    with pytest.raises(ValueError, match=r"NOPE|middle"):
        LoopError(code, "x", phase=phase)


def test_kinds_of_error() -> None:
    assert {"ENGINE", "TIMEOUT", "RATE_LIMIT", "QUOTA", "BUDGET"} == INFRASTRUCTURE
    assert {"RATE_LIMIT", "QUOTA", "BUDGET"} == LIMITS


def test_a_declaration_error_is_a_loop_error_and_a_type_error() -> None:
    error = DeclarationError("no")

    assert isinstance(error, LoopError)
    assert isinstance(error, TypeError)
    assert error.code == "CONFIG"


def test_wrapping_keeps_a_loop_error_and_gives_others_the_fallback() -> None:
    known = LoopError("QUOTA", "x")
    wrapped = as_loop_error(KeyError("k"), fallback="BODY", phase="body")

    assert as_loop_error(known, fallback="BODY") is known
    assert (wrapped.code, wrapped.phase, wrapped.message) == ("BODY", "body", "'k'")
    assert isinstance(wrapped.__cause__, KeyError)


def test_an_exception_without_text_is_named_by_its_type() -> None:
    assert as_loop_error(RuntimeError()).message == "RuntimeError"


def test_an_error_crosses_a_process_border_whole() -> None:
    error = LoopError("QUOTA", "x", path=("a",), reset_at=3)

    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert other.to_json() == error.to_json()


def test_r29_an_engines_failure_keeps_its_own_code_in_any_place() -> None:
    slow = as_loop_error(EngineError("rate-limit", "slow", retry_after_ms=9), fallback="BODY")
    odd = as_loop_error(EngineError("transient", "odd"), fallback="BODY")

    assert (slow.code, slow.retry_after_ms) == ("RATE_LIMIT", 9)
    assert (odd.code, odd.message) == ("BODY", "odd")
