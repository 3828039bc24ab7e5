"""When no further round of a loop may follow, and what it then ends with (R159-R161, R168)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runs.kernel import stalls
from runs.kernel.loops import LoopState, evidence_of
from runs.kernel.loopshape import LoopShape
from runs.kernel.outcomes import Outcome, Revision


def spent(shape: LoopShape, state: LoopState, review: Outcome | None) -> Outcome | None:
    """The end of a loop that is not met, or whose `review` did not pass; None for another round."""
    body = state.body or Outcome(status="fail")
    most = state.limit if state.keeps else shape.max
    rejected = review or state.rejected
    findings = kept(rejected.revision) if rejected is not None else None
    if review is not None:
        # Asked before the rejection is recorded, and again after.
        rejections = state.rejections + (state.phase == "review")
        limit = shape.max_review_restarts
        if limit is not None and rejections >= limit:
            return replace(review, status="exhausted", data=body.data, revision=findings)
        if most is not None and state.iteration >= most:
            return replace(review, status="fail", data=body.data, revision=findings)
    elif most is not None and state.iteration >= most:
        if state.keeps:
            # A stage that ran out of refinements fails with what was found last (W27, W69).
            return replace(body, revision=kept(body.revision))
        return Outcome(status="exhausted", summary=body.summary, data=body.data, revision=findings)
    if stalled := _stalled(shape, state):
        return Outcome(
            status="exhausted",
            summary=str(stalled["reason"]),
            data=body.data,
            revision=findings,
            stall=stalled,
        )
    return None


def kept(revision: Revision | None) -> Revision | None:
    """A loop that ran out sends nothing back: its findings lose their target (runs.md R161)."""
    return None if revision is None else replace(revision, target=None, rerun=None)


def _stalled(shape: LoopShape, state: LoopState) -> Mapping[str, Any] | None:
    rule = shape.no_progress
    if rule is None or not state.iteration:
        return None
    last = evidence_of(state)
    found = stalls.watch(rule, (*state.history, last))
    return stalls.report(rule, found, last) if len(found.flat) >= rule.window else None


def shows_nothing(shape: LoopShape, state: LoopState) -> bool:
    """Whether this round fills a window of rounds that showed nothing to go by."""
    rule = shape.no_progress
    if rule is None or not state.iteration:
        return False
    return stalls.watch(rule, (*state.history, evidence_of(state))).blank == rule.window
