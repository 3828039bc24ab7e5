"""Whether the rounds of a loop still lead anywhere (runs.md R168)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs.kernel.jsonable import JSONValue
from runs.kernel.loops import Evidence
from runs.kernel.loopshape import StallRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What the rounds so far come to: how many in a row were flat, or showed nothing at all."""

    flat: tuple[int, ...] = ()
    blank: int = 0


def watch(rule: StallRule, rounds: Sequence[Evidence]) -> Watch:
    """Go through the rounds of one invocation, oldest first; round 1 is the first of them."""
    seen: set[tuple[str, str]] = set()
    best: float | None = None
    flat: list[int] = []
    blank = 0
    for number, round_ in enumerate(rounds, start=1):
        states = _states(rule, round_)
        confident = round_.confidence
        if not states and confident is None:
            blank += 1
            continue
        blank = 0
        better = confident is not None and (
            best is None or confident >= best + rule.min_confidence_delta
        )
        if better or any(state not in seen for state in states):
            flat = []
        else:
            flat.append(number)
        seen.update(states)
        if better:
            best = confident
    return Watch(flat=tuple(flat), blank=blank)


def _states(rule: StallRule, round_: Evidence) -> list[tuple[str, str]]:
    found = [("workspace", round_.workspace if rule.workspace else None)]
    found.append(("signal", round_.signal if rule.signal else None))
    found.append(("gate", round_.gate if rule.gate else None))
    return [(name, state) for name, state in found if state is not None]


def report(rule: StallRule, found: Watch, last: Evidence) -> dict[str, JSONValue]:
    """The stall as the record and the outcome show it."""
    rounds = found.flat[-rule.window :]
    evidence: list[JSONValue] = [f"{name}: unchanged" for name, _ in _states(rule, last)]
    if last.confidence is not None:
        evidence.append(f"confidence: {last.confidence:g}, no better than before")
    return {
        "window": rule.window,
        "iterations": list(rounds),
        "reason": f"{rule.window} rounds in a row changed nothing",
        "evidence": evidence,
    }
