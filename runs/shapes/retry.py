"""How an author says that a step may be tried again (interactions.md I84)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from runs.kernel.errors import DeclarationError
from runs.kernel.retries import RetryPolicy

_COUNTS = ("base_delay_ms", "max_delay_ms", "retry_after_cap_ms")


def to_policy(given: Any, where: str) -> RetryPolicy | None:
    """True, a number of attempts, a mapping of the policy's names, or a policy; None for none."""
    if given is None or given is False:
        return None
    if given is True:
        return RetryPolicy()
    if isinstance(given, int):
        given = {"max_attempts": given}
    if isinstance(given, Mapping):
        known = {item.name for item in fields(RetryPolicy)}
        if unknown := sorted(map(str, set(given) - known)):
            raise DeclarationError(f"retry of {where} has unknown keys: {', '.join(unknown)}.")
        given = RetryPolicy(**given)
    if not isinstance(given, RetryPolicy):
        raise DeclarationError(f"retry of {where} is a number of attempts or a mapping.")
    _check(given, where)
    return given


def _check(policy: RetryPolicy, where: str) -> None:
    if not _is_int(policy.max_attempts) or policy.max_attempts < 1:
        raise DeclarationError(f"max_attempts of {where} is no count of 1 or more.")
    for name in _COUNTS:
        if not _is_int(getattr(policy, name)) or getattr(policy, name) < 0:
            raise DeclarationError(f"{name} of {where} is no count of milliseconds.")
    if not _is_number(policy.backoff_factor) or not 1 <= policy.backoff_factor <= 100:
        raise DeclarationError(f"backoff_factor of {where} is no number from 1 to 100.")
    if not _is_number(policy.jitter) or not 0 <= policy.jitter <= 1:
        raise DeclarationError(f"jitter of {where} is no number from 0 to 1.")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_int(value) or (isinstance(value, float) and math.isfinite(value))
