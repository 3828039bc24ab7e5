from __future__ import annotations

import pytest

from runs.kernel.errors import LoopError
from runs.kernel.turns import AgentResult, EngineError, Part, engine_failure, final_text


@pytest.mark.parametrize(
    ("kind", "code", "retryable"),
    [
        ("rate-limit", "RATE_LIMIT", True),
        ("quota", "QUOTA", False),
        ("timeout", "TIMEOUT", True),
        ("aborted", "ABORTED", False),
        ("invalid-config", "CONFIG", False),
        ("transient", "ENGINE", True),
        ("unknown", "ENGINE", True),
        ("auth", "ENGINE", False),
        ("missing-cli", "ENGINE", False),
    ],
)
def test_r29_an_engines_failure_has_a_code(kind: str, code: str, retryable: bool) -> None:
    raised = EngineError(kind, "no luck")
    error = engine_failure(raised, cancelled=False)

    assert (error.code, error.retryable, error.message) == (code, retryable, "no luck")
    assert error.phase == "engine"
    assert error.__cause__ is raised


def test_r29_retry_hints_are_kept() -> None:
    error = engine_failure(EngineError("quota", "spent", reset_at=99), cancelled=False)

    assert (error.reset_at, error.retryable) == (99, True)
    limit = engine_failure(EngineError("rate-limit", "slow", retry_after_ms=5), cancelled=False)
    assert limit.retry_after_ms == 5


def test_r29_any_other_exception_is_an_engine_error_or_a_cancel() -> None:
    assert engine_failure(OSError("gone"), cancelled=False).code == "ENGINE"
    assert engine_failure(OSError("gone"), cancelled=True).code == "ABORTED"
    known = LoopError("BUDGET", "spent")
    assert engine_failure(known, cancelled=True) is known


def test_a_kind_is_one_of_the_known() -> None:
    with pytest.raises(ValueError, match="tired"):
        EngineError("tired", "x")


def test_e9_exactly_one_part_is_final() -> None:
    first, last = Part(text="thinking"), Part(text="yes", final=True)

    assert final_text(AgentResult(parts=(first, last))) == "yes"
    for parts in ((), (first,), (last, last)):
        with pytest.raises(EngineError, match="final"):
            final_text(AgentResult(parts=parts))


def test_e39_a_structured_value_is_read_as_json() -> None:
    part = Part(value={"verdict": "yes"}, structured=True, final=True)

    assert final_text(AgentResult(parts=(part,))) == '{"verdict": "yes"}'
