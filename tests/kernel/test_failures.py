from __future__ import annotations

import pytest

from runs.kernel.errors import EngineError, LoopError
from runs.kernel.failures import LANE_DEAD_FAILURES, classify_engine_failure
from runs.kernel.turns import engine_failure


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Invalid value 'x'; supported values: a, b", "invalid-config"),
        ("cannot parse config file", "invalid-config"),
        ("Your credit balance is too low", "billing"),
        ("HTTP 402", "billing"),
        ("Invalid API key provided", "auth"),
        ("please login first", "auth"),
        ("401 Unauthorized", "auth"),
        ("spawn ENOENT", "missing-cli"),
        ("model foo-9 does not exist", "model-unavailable"),
        ("status 404", "model-unavailable"),
        ("monthly usage limit reached", "quota"),
        ("Rate limit exceeded", "rate-limit"),
        ("Overloaded", "rate-limit"),
        ("error 529", "rate-limit"),
        ("the request timed out", "timeout"),
        ("502 Bad Gateway", "transient"),
        ("HTTP 503", "transient"),
        ("no idea", "unknown"),
        # Numbers stand alone, and words are words (E22).
        ("took 14290 ms", "unknown"),
        ("blogin", "unknown"),
        ("request 1401", "unknown"),
    ],
)
def test_e20_a_failure_is_read_from_its_text(text: str, kind: str) -> None:
    assert classify_engine_failure(RuntimeError(text)) == kind


def test_e20_what_is_typed_needs_no_reading() -> None:
    cause = RuntimeError("odd")
    cause.__cause__ = FileNotFoundError("claude")

    assert classify_engine_failure(EngineError("quota", "401")) == "quota"
    assert classify_engine_failure(LoopError("RATE_LIMIT", "401")) == "rate-limit"
    assert classify_engine_failure(FileNotFoundError("x")) == "missing-cli"
    assert classify_engine_failure(cause) == "missing-cli"
    assert classify_engine_failure(TimeoutError()) == "timeout"


def test_e23_the_kind_stays_with_the_error_and_says_whether_a_second_try_helps() -> None:
    told = {
        text: engine_failure(RuntimeError(text), cancelled=False)
        for text in ("429", "401", "503", "monthly quota", "no idea")
    }

    assert {text: (e.code, e.retryable, e.engine_failure) for text, e in told.items()} == {
        "429": ("RATE_LIMIT", True, "rate-limit"),
        "401": ("ENGINE", False, "auth"),
        "503": ("ENGINE", True, "transient"),
        "monthly quota": ("QUOTA", False, "quota"),
        "no idea": ("ENGINE", True, None),
    }


def test_e19_what_takes_a_lane_out_of_service() -> None:
    assert {"auth", "quota", "missing-cli"} <= LANE_DEAD_FAILURES
    assert not {"rate-limit", "timeout", "unknown"} & LANE_DEAD_FAILURES
