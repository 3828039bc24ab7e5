"""Conditions over what came before: the body's outcome, several voices, a share of the cases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from runs.kernel.conditions import (
    Condition,
    ConditionResult,
    Vote,
    is_data,
    labels_of,
    tally,
    to_condition,
)
from runs.kernel.confidence import is_share
from runs.kernel.errors import INFRASTRUCTURE, DeclarationError, LoopError
from runs.kernel.jsonable import digest_hex
from runs.kernel.outcomes import Outcome
from runs.kernel.sources import code_digest

_MOST: Final = 2**32 - 1


class OutOfRange(DeclarationError, ValueError):
    """A number that lies outside what its builder takes."""


class OtherVoice(Exception):
    """What another voter of a quorum printed; the cause of the error that stopped the count."""


def body_passed() -> Condition:
    """Met when the last body outcome passed (runs.md R87)."""
    return Condition({"op": "body_passed", "label": "body passed"})


def min_confidence(threshold: float) -> Condition:
    """Met when the last body outcome's confidence, 0 if absent, is at least this (R87)."""
    if not is_share(threshold):
        raise OutOfRange(f"min_confidence() takes a number from 0 to 1, not {threshold!r}.")
    label = f"confidence at least {threshold:g}"
    return Condition({"op": "min_confidence", "threshold": threshold, "label": label})


def quorum(k: int, *inputs: Any) -> Condition:
    """Met when at least `k` of the inputs hold; code among them runs side by side (R91, R92)."""
    parts = tuple(to_condition(item) for item in inputs)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= len(parts):
        raise DeclarationError(f"quorum() takes a count from 1 to {len(parts)}, not {k!r}.")
    inner = ", ".join(label for part in parts for label in labels_of(part.shape))
    shape = {
        "op": "quorum",
        "k": k,
        "parts": [dict(part.shape) for part in parts],
        "label": f"quorum({k}, {inner})",
    }

    def check(ctx: Any, last: Outcome | None) -> ConditionResult:
        return _counted(k, _votes(ctx, parts, last))

    return Condition(shape, None if is_data(shape) else check, parts)


def _votes(ctx: Any, parts: tuple[Condition, ...], last: Outcome | None) -> list[Vote]:
    def ask(part: Condition) -> Vote:
        try:
            return part(ctx, last)
        except Exception as raised:  # noqa: BLE001 - a voter that raises says no (R91)
            return raised

    side_by_side = getattr(ctx, "side_by_side", None)
    calls = [partial(ask, part) for part in parts]
    votes: list[Vote] = [call() for call in calls] if side_by_side is None else side_by_side(calls)
    return votes


def _counted(k: int, votes: list[Vote]) -> ConditionResult:
    result = tally(k, votes)
    broken = [vote for vote in votes if isinstance(vote, LoopError) and vote.code in INFRASTRUCTURE]
    if result.met or not broken or _yes(votes) + len(broken) < k:
        return result
    first = broken[0]
    if result.output is not None and first.__cause__ is None:
        first.__cause__ = OtherVoice(result.output)
    raise first


def _yes(votes: list[Vote]) -> int:
    return sum(isinstance(vote, ConditionResult) and vote.met for vote in votes)


def sampled(
    rate: float, condition: Any, *, key: str | Callable[[Any], str] | None = None
) -> Condition:
    """Evaluate only this share of the cases, the others are met; same key, same side (R93).

    Without a `key` a case is the path and iteration: `a/b:2`.
    """
    if not is_share(rate):
        raise OutOfRange(f"sampled() takes a rate from 0 to 1, not {rate!r}.")
    if key is not None and not isinstance(key, str) and not callable(key):
        raise DeclarationError("the key of sampled() is text or a function of ctx.")
    part = to_condition(condition)
    inner = dict(part.shape)
    identity = {
        "name": "sampled",
        "rate": rate,
        "key": code_digest(key) if callable(key) else key,
        "condition": inner,
    }
    shape = {
        "op": "code",
        "label": f"sampled({rate:g}, {' and '.join(labels_of(part.shape))})",
        "code": digest_hex(identity),
        "parts": [inner],
    }

    def check(ctx: Any, last: Outcome | None) -> ConditionResult:
        case = _case(ctx, key)
        if bucket_of(case) >= rate:
            return ConditionResult(met=True, reason=f"{case!r} is not in the sample")
        return part(ctx, last)

    return Condition(shape, check, (part,))


def _case(ctx: Any, key: str | Callable[[Any], str] | None) -> str:
    if key is None:
        return f"{'/'.join(ctx.path)}:{ctx.iteration}"
    return str(ctx.call(key)) if callable(key) else key


def bucket_of(key: str) -> float:
    """Where a key falls between 0 and 1: the first four bytes of its SHA-256 (runs.md R93)."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") / _MOST


def last_gate_brief(ctx: Any, *, max_output_chars: int = 2000) -> str:
    """Why the enclosing loop's last gate was not met; empty when there is none (R103)."""
    gate: ConditionResult | None = ctx.last_gate
    if gate is None or gate.met:
        return ""
    parts = [f"The last check was not met: {gate.reason}"]
    if gate.output:
        cut = gate.output[:max_output_chars]
        left_out = len(gate.output) - len(cut)
        parts.append(cut if not left_out else f"{cut}\n[{left_out} characters cut]")
    return "\n".join(parts)
