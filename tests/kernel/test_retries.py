"""The wait between two tries, and what a limit leads to (interactions.md I83-I92, runs.md R261)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.errors import LoopError
from runs.kernel.events import EventKind
from runs.kernel.outcomes import failing
from runs.kernel.retries import Limits, RetryPolicy, follow, wait_ms


def test_half_is_rounded_up_i85() -> None:
    assert RetryPolicy().delay_ms(1, 0.3) == 463


@pytest.mark.parametrize(
    ("failed", "least", "most"),
    [(1, 375, 500), (2, 750, 1000), (3, 1500, 2000), (4, 3000, 4000), (6, 6000, 8000)],
)
def test_the_ranges_of_the_defaults_i85(failed: int, least: int, most: int) -> None:
    assert RetryPolicy().delay_ms(failed, 0.0) == most
    assert least <= RetryPolicy().delay_ms(failed, 0.999_999) <= most


@pytest.mark.parametrize(
    ("failed", "chance", "wait"),
    [
        (1, 0.0, 500),
        (1, 0.3, 463),
        (1, 1.0, 375),
        (2, 1.0, 750),
        (2, 0.5, 875),
        (3, 0.25, 1_875),
        (4, 0.0, 4_000),
        (5, 0.0, 8_000),
        (6, 0.0, 8_000),
    ],
)
def test_the_wait_is_the_one_of_the_formula_i85(failed: int, chance: float, wait: int) -> None:
    assert RetryPolicy().delay_ms(failed, chance) == wait


@pytest.mark.parametrize(
    ("hint", "wait"),
    [
        (None, 500), (0, 500), (100, 500), (500, 500), (501, 501), (2_000, 2_000),
        (60_000, 60_000), (60_001, 60_000), (90_000, 60_000), (600_000, 60_000),
    ],
)  # fmt: skip
def test_a_hint_is_a_floor_up_to_its_cap_i85_i87(hint: int | None, wait: int) -> None:
    assert RetryPolicy().delay_ms(1, 0.0, hint) == wait


@given(st.integers(1, 20), st.floats(0, 1, exclude_max=True))
def test_no_wait_leaves_its_bounds(failed: int, chance: float) -> None:
    policy = RetryPolicy(max_attempts=99)
    backoff = min(500 * 2 ** (failed - 1), 8_000)
    assert backoff * 0.75 <= policy.delay_ms(failed, chance) <= backoff


def after(
    error: LoopError, *, tries: int = 0, policy: RetryPolicy | None = None, **limits: Any
) -> Any:
    return follow("r", ("g", "a"), tries, failing(error), policy, Limits(**limits), 1_000)


def test_a_passing_failure_is_tried_again_i89() -> None:
    event = after(LoopError("ENGINE", "away"), policy=RetryPolicy(jitter=0))
    assert event.kind == EventKind.RETRY_PENDING
    assert event.fields == {
        "attempt": 1,
        "maxAttempts": 5,
        "nextAttempt": 2,
        "nextAttemptAt": 1_500,
        "delayMs": 500,
        "error": LoopError("ENGINE", "away").to_json(),
    }


def test_the_same_place_and_time_give_the_same_wait() -> None:
    first, second = (after(LoopError("ENGINE", "away"), policy=RetryPolicy()) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("tries", [4, 5, 99])
def test_the_last_try_is_the_last_i86(tries: int) -> None:
    assert after(LoopError("ENGINE", "away"), tries=tries, policy=RetryPolicy()) is None


@pytest.mark.parametrize("code", ["BODY", "VALIDATION", "CONFIG", "ABORTED", "UNKNOWN"])
def test_what_a_second_try_cannot_mend_is_final_i86(code: str) -> None:
    assert after(LoopError(code, "no"), policy=RetryPolicy()) is None


def test_one_attempt_is_no_retry_i84() -> None:
    assert after(LoopError("TIMEOUT", "late"), policy=RetryPolicy(max_attempts=1)) is None


LIMIT = {
    "known": LoopError("RATE_LIMIT", "slow down", retry_after_ms=5_000),
    "long": LoopError("RATE_LIMIT", "slow down", retry_after_ms=999_999_999),
    "reset": LoopError("QUOTA", "spent", reset_at=3_000),
    "unknown": LoopError("RATE_LIMIT", "slow down"),
    "budget": LoopError("BUDGET", "no tokens left"),
}


@pytest.mark.parametrize(
    ("which", "on_limit", "kind"),
    [
        ("known", "auto", "limit:wait"),
        ("long", "auto", "limit:pause"),
        ("long", "wait", "limit:wait"),
        ("reset", "auto", "limit:wait"),
        ("unknown", "auto", "limit:pause"),
        ("unknown", "wait", "limit:pause"),
        ("known", "exit", "limit:pause"),
        ("budget", "auto", "limit:pause"),
        ("budget", "wait", "limit:pause"),
        ("known", "fail", None),
        ("budget", "fail", None),
    ],
)
def test_the_limit_policy_r262(which: str, on_limit: str, kind: str | None) -> None:
    event = after(LIMIT[which], on_limit=on_limit)
    assert (None if event is None else event.kind) == kind


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (LoopError("RATE_LIMIT", "", retry_after_ms=5), 5),
        (LoopError("RATE_LIMIT", "", retry_after_ms=-5), None),
        (LoopError("QUOTA", "", reset_at=1_400), 400),
        (LoopError("QUOTA", "", reset_at=400), 0),
        (LoopError("QUOTA", ""), None),
        (LoopError("BUDGET", "", retry_after_ms=5), None),
    ],
)
def test_how_long_a_limit_asks_for_r261(error: LoopError, wait: int | None) -> None:
    assert wait_ms(error.to_json(), 1_000) == wait


def test_a_policy_survives_its_wire_form() -> None:
    policy = RetryPolicy(max_attempts=2, jitter=0.5)
    assert RetryPolicy.from_json(policy.to_json()) == policy
