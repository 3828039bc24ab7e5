"""The loop: a body that runs until its condition holds, and a review behind it (runs.md R147)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runs.kernel.conditions import Condition, to_condition
from runs.kernel.errors import DeclarationError
from runs.kernel.graph import LoopShape, RetryRule, StallRule
from runs.kernel.sources import code_digest
from runs.shapes.job import Job, Loop, to_job

Function = Callable[[Any], Any]


def loop(
    name: str,
    body: Any,
    *,
    until: Any = None,
    start: Any = None,
    stop_on: Any = None,
    review: Any = None,
    max: int | None = None,  # noqa: A002 - the word of the seeds
    max_review_restarts: int | None = None,
    check_first: bool = False,
    no_progress: int | Mapping[str, Any] | None = None,
    delay_ms: int = 0,
    retry: Mapping[str, Any] | None = None,
    on_iteration: Function | None = None,
    on_complete: Function | None = None,
    keeps_rounds: bool = False,
) -> Job:
    """A body in rounds, `max` of them at most, until `until` is met and `review` passes.

    Without `until` the body's own pass is the verdict. `on_iteration(ctx)` is called after every
    body, `on_complete(ctx)` once at the end; `ctx.last_outcome` is what came of it. Times are in
    milliseconds. Raises DeclarationError for a loop that cannot be.
    """
    if not isinstance(name, str) or not name:
        raise DeclarationError("a loop needs a name.")
    given = {"start": start, "until": until, "stopOn": stop_on}
    checks = {key: to_condition(value) for key, value in given.items() if value is not None}
    if check_first and until is None:
        raise DeclarationError(f"loop {name!r} checks first, but has no until.")
    stall, signal = _stall(name, no_progress)
    body, review = to_job(body), None if review is None else to_job(review)
    shape = LoopShape(
        name=name,
        body=body.shape,
        review=None if review is None else review.shape,
        start=_data(checks, "start"),
        until=_data(checks, "until"),
        stop_on=_data(checks, "stopOn"),
        max=_count(name, "max", max, least=1),
        max_review_restarts=_count(name, "max_review_restarts", max_review_restarts),
        check_first=bool(check_first),
        no_progress=stall,
        delay_ms=_count(name, "delay_ms", delay_ms) or 0,
        retry=_retry(name, retry),
        on_iteration=_code(name, "on_iteration", on_iteration),
        on_complete=_code(name, "on_complete", on_complete),
        keeps_rounds=keeps_rounds,
    )
    return Loop(shape, body, review, checks, signal, on_iteration, on_complete)


def _data(checks: Mapping[str, Condition], which: str) -> dict[str, Any] | None:
    return dict(checks[which].shape) if which in checks else None


def _count(name: str, key: str, given: int | None, *, least: int = 0) -> int | None:
    if given is None:
        return None
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise DeclarationError(f"{key} of loop {name!r} is no count of {least} or more.")
    return given


def _code(name: str, key: str, fn: Function | None) -> str:
    if fn is None:
        return ""
    if not callable(fn):
        raise DeclarationError(f"{key} of loop {name!r} is no function of ctx.")
    return code_digest(fn)


def _stall(name: str, given: Any) -> tuple[StallRule | None, Function | None]:
    if given is None:
        return None, None
    if not isinstance(given, Mapping):
        window = _count(name, "no_progress", given, least=1)
        return StallRule(window=window or 1), None
    known = {"window", "min_confidence_delta", "signal", "workspace", "gate"}
    _no_others(name, "no_progress", given, known)
    delta, signal = given.get("min_confidence_delta", 0.02), given.get("signal")
    if not isinstance(delta, int | float) or isinstance(delta, bool) or not 0 <= delta <= 1:
        raise DeclarationError(f"min_confidence_delta of loop {name!r} is no number from 0 to 1.")
    rule = StallRule(
        window=_count(name, "window", given.get("window", 3), least=1) or 1,
        min_confidence_delta=float(delta),
        workspace=bool(given.get("workspace", True)),
        gate=bool(given.get("gate", False)),
        signal=_code(name, "signal", signal),
    )
    return rule, signal


def _retry(name: str, given: Any) -> RetryRule | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise DeclarationError(f"retry of loop {name!r} is no mapping.")
    _no_others(name, "retry", given, {"on_error", "max_consecutive", "backoff_ms"})
    on_error = given.get("on_error", "continue")
    if on_error not in ("continue", "fail"):
        raise DeclarationError(f'on_error of loop {name!r} is "continue" or "fail".')
    return RetryRule(
        fails=on_error == "fail",
        max_consecutive=_count(name, "max_consecutive", given.get("max_consecutive"), least=1),
        backoff_ms=_count(name, "backoff_ms", given.get("backoff_ms", 0)) or 0,
    )


def _no_others(name: str, key: str, given: Mapping[str, Any], known: set[str]) -> None:
    if others := sorted(set(given) - known):
        raise DeclarationError(f"{key} of loop {name!r} has unknown keys: {', '.join(others)}.")
