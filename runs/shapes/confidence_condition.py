"""A job that says how sure it is, as a condition (runs.md R100)."""

from __future__ import annotations

from typing import Any, Final, Literal, cast

from runs.kernel.conditions import Condition, ConditionResult
from runs.kernel.confidence import confidence_from_text, is_share, last_decision_line
from runs.kernel.errors import INFRASTRUCTURE, DeclarationError, LoopError, as_loop_error
from runs.kernel.jsonable import digest_hex
from runs.kernel.judging import OutOfRange
from runs.kernel.outcomes import Outcome, failing
from runs.shapes.job import Asking, Leaf, outcome_of, to_job

CONCISE: Final = 280
Scale = Literal["fraction", "percent"]
_HINTS: Final = {"retry_after_ms": "retryAfterMs", "reset_at": "resetAt"}
Reason = Literal["concise", "full"]


def confidence_condition(
    job: Any,
    *,
    scale: Scale = "fraction",
    threshold: float | None = None,
    token: str = "confidence",  # noqa: S107 - the word that is looked for, no secret
    allow_na: bool = False,
    reason: Reason = "concise",
) -> Condition:
    """Met when the job passed and the confidence its text names is at least `threshold`.

    The threshold is 0.8, or 80 with `scale="percent"`. `allow_na` takes `n/a` from a passing job
    for certainty. The text is the outcome's data, else its summary; the reason is its first line's
    worth or, with `"full"`, all of it. Infrastructure errors and cancels are raised.
    """
    inner = to_job(job)
    if not isinstance(inner, Leaf):
        raise DeclarationError("confidence_condition() takes a step, not a graph or a loop.")
    if scale not in ("fraction", "percent") or reason not in ("concise", "full"):
        raise DeclarationError(
            'confidence_condition() has the scales "fraction" and "percent" '
            'and the reasons "concise" and "full".'
        )
    most = 1 if scale == "fraction" else 100
    given = 0.8 * most if threshold is None else threshold
    if not isinstance(given, int | float) or not is_share(given / most):
        raise OutOfRange(f"the threshold of confidence_condition() is from 0 to {most}.")
    if not isinstance(token, str) or not token.strip():
        raise DeclarationError("the token of confidence_condition() is a word.")
    wanted = given / most
    identity = {
        "name": "confidence_condition",
        "job": inner.shape.to_json(),
        "threshold": wanted,
        "token": token,
        "allowNa": allow_na,
        "reason": reason,
    }

    def check(ctx: Any, last: Outcome | None) -> ConditionResult:
        outcome = _outcome(inner, ctx, last)
        text = outcome.data if isinstance(outcome.data, str) else outcome.summary or ""
        sure = _confidence(text, token, allow_na=allow_na and outcome.passed)
        told = text if reason == "full" else " ".join(text.split())[:CONCISE]
        return ConditionResult(
            met=outcome.passed and sure is not None and sure >= wanted,
            reason=told or f"{inner.shape.label} ended {outcome.status}",
            confidence=sure or 0.0,
            output=None if outcome.passed else text or None,
        )

    label = f"confidence of {inner.shape.label} at least {wanted:g}"
    return Condition({"op": "code", "label": label, "code": digest_hex(identity)}, check=check)


def _outcome(job: Leaf, ctx: Any, last: Outcome | None) -> Outcome:
    try:
        value = job(ctx.judging(last))
    except Exception as raised:  # noqa: BLE001 - a step that raises has failed (R34)
        value = failing(as_loop_error(raised, fallback="BODY", phase="body"))
    if ctx.signal.is_set():
        raise LoopError("ABORTED", "the run was cancelled.")
    if isinstance(value, Asking):
        text = f"the step {job.shape.label!r} asks a person; a condition cannot wait for one."
        raise LoopError("VALIDATION", text, phase="body")
    outcome = outcome_of(job.shape.label, value)
    error = outcome.error or {}
    if outcome.status == "aborted" or error.get("code") in {*INFRASTRUCTURE, "ABORTED"}:
        code = str(error.get("code") or "ABORTED")
        text = str(error.get("message") or outcome.summary or "cancelled")
        hints = {key: error.get(name) for key, name in _HINTS.items()}
        raise LoopError(code, text, phase="body", **cast("Any", hints))
    return outcome


def _confidence(text: str, token: str, *, allow_na: bool) -> float | None:
    said = last_decision_line(text, token, ["n/a"], mode="last-match")
    if said is not None:
        return 1.0 if allow_na else None
    return confidence_from_text(text, token)
