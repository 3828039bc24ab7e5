"""One invocation of a loop: which round it is in and what the round came to so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from runs.kernel.conditions import ConditionResult
from runs.kernel.evolving import evolve
from runs.kernel.jsonable import digest_hex
from runs.kernel.outcomes import Outcome

Phase = Literal["before", "body", "review", "reviewed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a round left behind; a value that was not looked at is None (runs.md R168)."""

    workspace: str | None = None
    signal: str | None = None
    gate: str | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """When a body or a review was due, began and ended; 0 for what has not happened."""

    due: int = 0
    began: int = 0
    ended: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """Where a loop stands.

    `body` is what this round's body came to, `before` what the last round's did. `verdicts`
    holds what the checks of this round said, `rejections` how often a review did not pass.
    `anew` marks a loop that a new session runs from its first round, `adopts` one whose first
    round takes over what the graphs in its body had finished before (runs.md R228, R229). `keeps`
    is that of its shape; then `limit` is how many rounds are left for this invocation.
    """

    invocation: int
    started_at: int = 0
    iteration: int = 0
    phase: Phase = "before"
    verdicts: Mapping[str, ConditionResult] = field(default_factory=dict)
    looked: bool = False
    error: Mapping[str, Any] | None = None
    before: Outcome | None = None
    body: Outcome | None = None
    raised: bool = False
    review: Outcome | None = None
    last_gate: ConditionResult | None = None
    last_review: Outcome | None = None
    rejected: Outcome | None = None
    rejections: int = 0
    raises: int = 0
    body_span: Span = Span()
    review_span: Span = Span()
    seen: Evidence = Evidence()
    history: tuple[Evidence, ...] = ()
    ended: Outcome | None = None
    keeps: bool = False
    limit: int | None = None
    anew: bool = False
    adopts: bool = False

    @property
    def in_review(self) -> bool:
        return self.phase in ("review", "reviewed")

    @property
    def is_open(self) -> bool:
        return self.ended is None and not self.anew


def opened(
    before: LoopState | None,
    *,
    invocation: int,
    at: int,
    keeps: bool = False,
    limit: int | None = None,
) -> LoopState:
    """A loop that begins; one that begins anew takes over what its body had finished."""
    adopts = before is not None and before.anew
    return LoopState(invocation=invocation, started_at=at, adopts=adopts, keeps=keeps, limit=limit)


def next_round(loop: LoopState, iteration: int, at: int) -> LoopState:
    """The loop as its next round begins."""
    history = loop.history
    if loop.iteration:
        history = (*history, evidence_of(loop))
    return evolve(
        loop,
        iteration=iteration,
        phase="body",
        verdicts={},
        looked=False,
        before=loop.body,
        last_review=_to_answer(loop),
        body=None,
        raised=False,
        review=None,
        body_span=Span(due=at),
        review_span=Span(),
        seen=Evidence(),
        history=history,
        adopts=False,
    )


def _to_answer(loop: LoopState) -> Outcome | None:
    """What the next round has to answer: a review, or what a stage's own check found missing."""
    body, review = loop.body, loop.review
    if review is not None and not review.passed:
        return review
    asks = loop.keeps and body is not None and not body.passed and body.revision is not None
    return body if asks else None


def once_more(loop: LoopState) -> LoopState:
    """The loop at the begin of the round it is in, with the last review that was a no (W80)."""
    return evolve(
        loop,
        phase="body",
        verdicts={},
        looked=False,
        error=None,
        body=None,
        raised=False,
        review=None,
        body_span=Span(),
        review_span=Span(),
        last_review=loop.rejected or loop.last_review,
        ended=None,
    )


def evidence_of(loop: LoopState) -> Evidence:
    """What the round that just ended shows."""
    verdict = loop.verdicts.get("until")
    unmet = verdict is not None and not verdict.met and verdict.output is not None
    confidence = None if verdict is None else verdict.confidence
    if confidence is None and loop.body is not None:
        confidence = loop.body.confidence
    return evolve(
        loop.seen,
        gate=digest_hex(verdict.output) if unmet and verdict is not None else None,
        confidence=confidence,
    )


def body_ended(loop: LoopState, outcome: Outcome, *, raised: bool) -> LoopState:
    """The body of this round came to its end."""
    # Only raises in a row count against the loop (runs.md R162).
    raises = loop.raises + 1 if raised else 0
    return evolve(loop, body=outcome, raised=raised, raises=raises)


def checked(loop: LoopState, which: str, result: ConditionResult) -> LoopState:
    """A check of this round gave its verdict."""
    loop = evolve(loop, verdicts={**loop.verdicts, which: result})
    return evolve(loop, last_gate=result) if which == "until" else loop


def reviewed(loop: LoopState, outcome: Outcome) -> LoopState:
    """The review of this round is recorded."""
    loop = evolve(loop, phase="reviewed", review=outcome)
    if outcome.passed:
        return loop
    return evolve(loop, rejected=outcome, last_review=outcome, rejections=loop.rejections + 1)
