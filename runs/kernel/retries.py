"""Trying again what failed for a passing reason, and waiting out a limit (interactions.md I83-I92).

The wait is a time in the record, so neither a crash nor a restart loses the count, and the jitter
comes from the place and the number of the try, so a replay decides the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from typing import Any, Final

from runs.kernel.errors import LIMITS
from runs.kernel.events import Event, EventKind, Path, joined
from runs.kernel.jsonable import JSONValue, digest_hex
from runs.kernel.outcomes import Outcome

ON_LIMIT: Final = ("auto", "wait", "exit", "fail")
MAX_WAIT_MS: Final = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a step is tried and how long it waits in between (I84). Times in milliseconds."""

    max_attempts: int = 5
    base_delay_ms: int = 500
    backoff_factor: float = 2
    max_delay_ms: int = 8_000
    jitter: float = 0.25
    retry_after_cap_ms: int = 60_000

    def delay_ms(self, failed: int, chance: float, hint_ms: int | None = None) -> int:
        """The wait after failed try `failed` (from 1); `chance` is in [0, 1) (I85).

        Rounded half up. A server's hint is a floor, itself cut to the cap.
        """
        backoff = min(self.base_delay_ms * self.backoff_factor ** (failed - 1), self.max_delay_ms)
        wait = backoff * (1 - chance * self.jitter)
        if hint_ms is not None:
            wait = max(wait, min(hint_ms, self.retry_after_cap_ms))
        return floor(wait + 0.5)

    def to_json(self) -> dict[str, JSONValue]:
        return {
            "maxAttempts": self.max_attempts,
            "baseDelayMs": self.base_delay_ms,
            "backoffFactor": self.backoff_factor,
            "maxDelayMs": self.max_delay_ms,
            "jitter": self.jitter,
            "retryAfterCapMs": self.retry_after_cap_ms,
        }

    @classmethod
    def from_json(cls, wire: Mapping[str, Any]) -> RetryPolicy:
        return cls(
            max_attempts=wire["maxAttempts"],
            base_delay_ms=wire["baseDelayMs"],
            backoff_factor=wire["backoffFactor"],
            max_delay_ms=wire["maxDelayMs"],
            jitter=wire["jitter"],
            retry_after_cap_ms=wire["retryAfterCapMs"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run does when a step meets a limit that is not its own (runs.md R262)."""

    on_limit: str = "auto"
    max_wait_ms: int = MAX_WAIT_MS


def follow(
    run_id: str,
    path: Path,
    tries: int,
    outcome: Outcome,
    policy: RetryPolicy | None,
    limits: Limits,
    now: int,
) -> Event | None:
    """What follows a failure at `path` that may pass: the wait, or the pause; None when nothing.

    `tries` counts the failures of this attempt before this one.
    """
    error = outcome.error
    if outcome.status != "fail" or error is None:
        return None
    if policy is not None and error.get("retryable"):
        return _retry(run_id, path, tries + 1, error, policy, now)
    return _limit(path, error, limits, now) if error.get("code") in LIMITS else None


def _retry(
    run_id: str, path: Path, failed: int, error: Mapping[str, Any], policy: RetryPolicy, now: int
) -> Event | None:
    if failed >= policy.max_attempts:
        return None
    chance = int(digest_hex([run_id, joined(path), failed, now])[:8], 16) / 2**32
    wait = policy.delay_ms(failed, chance, wait_ms(error, now))
    fields: dict[str, Any] = {
        "attempt": failed,
        "maxAttempts": policy.max_attempts,
        "nextAttempt": failed + 1,
        "nextAttemptAt": now + wait,
        "delayMs": wait,
        "error": dict(error),
    }
    return Event(EventKind.RETRY_PENDING, path, fields, ts=now)


def _limit(path: Path, error: Mapping[str, Any], limits: Limits, now: int) -> Event | None:
    """Wait out the limit, pause, or let the failure stand (runs.md R261-R264)."""
    if limits.on_limit == "fail":
        return None
    code, wait = error.get("code"), wait_ms(error, now)
    longest = {"wait": None, "auto": limits.max_wait_ms}.get(limits.on_limit, -1)
    if wait is not None and (longest is None or wait <= longest):
        fields = {"code": code, "waitMs": wait, "resumeAt": now + wait}
        return Event(EventKind.LIMIT_WAIT, path, fields, ts=now)
    told = {"code": code, "reason": str(error.get("message", "")), "error": dict(error)}
    return Event(EventKind.LIMIT_PAUSE, path, told, ts=now)


def wait_ms(error: Mapping[str, Any], now: int) -> int | None:
    """How long the other side asks to be left alone, if it says (runs.md R261)."""
    after, reset = error.get("retryAfterMs"), error.get("resetAt")
    if error.get("code") == "BUDGET":
        return None
    if after is not None and after >= 0:
        return int(after)
    return max(0, int(reset) - now) if reset is not None else None
