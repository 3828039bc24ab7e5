"""Rounds in words: which one a step or loop is in, why it goes round, when the next one begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import Q

from runs.kernel.events import Path
from runs.kernel.graph import LoopShape, Shape
from runs.kernel.loops import LoopState
from runs.kernel.moments import moment
from runs.kernel.outcomes import Outcome
from runs.kernel.places import shape_at, trail
from runs.kernel.slots import Slot
from runs.kernel.state import RunState
from runs.models import Run, Step
from runs.pages import words
from runs.plaintext import first_line, visible
from runs.turns import folding

MAX_FINDINGS: Final = 20
SLEEPING: Final = "sleeping"


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """`text` is "round 3 of 10", `why` what the round before lacked; strangers' texts are safe.

    A step that failed and is tried again has `failed`, "attempt 1 of 5 failed", in place of a why
    for its round.
    """

    number: int
    text: str
    short: str
    why: str = ""
    findings: list[str] = field(default_factory=list)
    failed: str = ""
    resumes_at: datetime | None = None

    @property
    def head(self) -> str:
        """What stands before the reason."""
        if self.failed:
            return self.failed
        return f"{self.text}, because" if self.why else self.text

    @property
    def next_words(self) -> str:
        """What begins at `resumes_at`."""
        return "The next attempt begins" if self.failed else "The next round begins"


def rounds_of_run(run: Run) -> Mapping[Path, Rounds]:
    """The rounds of a run by the places of its steps; () is the run itself, when it is a loop."""
    if run.definition_id is None:
        return {}
    shape = folding.shape_of(run.definition_id)
    is_loop = isinstance(shape, LoopShape)
    # Reading a long record anew costs the page's time; most runs have no second round.
    goes_round = Q(attempt__gt=1) | Q(kind="loop") | Q(status=Step.Status.RETRY_PENDING)
    if not is_loop and not run.steps.filter(goes_round).exists():
        return {}
    return rounds_of(folding.state_at(run.pk, run.last_seq), shape)


def rounds_of(state: RunState, shape: Shape) -> dict[Path, Rounds]:
    """What is in a later round than its first, and every loop that has begun.

    A loop in a graph stands at its node, a loop that is the whole run at ().
    """
    found: dict[Path, Rounds] = {}
    for path, scope in state.scopes.items():
        for name, node in scope.nodes.items():
            if node.attempt > 1:
                found[*path, name] = _again(node.attempt, node.last_review)
    for path, loop in state.loops.items():
        if loop.iteration and not loop.anew:
            declared = shape_at(shape, path[:-1], state.loops)
            most = declared.max if isinstance(declared, LoopShape) else None
            sleeps = path in state.slots and state.slots[path].status == SLEEPING
            found[path[:-1]] = _loop(loop, most, None if sleeps else state.waits.get(path))
    for path, until in state.waits.items():
        slot = state.slots.get(path)
        if slot is not None and slot.status == SLEEPING:
            found[path] = _tried(found.get(path), slot, _most_tries(shape, path, state), until)
    return found


def _tried(known: Rounds | None, slot: Slot, most: int | None, until: int) -> Rounds:
    """A failure that may pass; a limit that is waited out counts no attempt."""
    outcome = slot.outcome
    error = {} if outcome is None or outcome.error is None else outcome.error
    said = error.get("message") or (outcome.summary if outcome is not None else "")
    bound = "" if most is None else f" of {most}"
    return Rounds(
        number=1 if known is None else known.number,
        text="" if known is None else known.text,
        short="" if known is None else known.short,
        why=first_line(str(said or error.get("code") or "")),
        failed=f"attempt {slot.tries}{bound} failed" if slot.tries else "limit reached",
        resumes_at=moment(until),
    )


def _most_tries(shape: Shape, path: Path, state: RunState) -> int | None:
    way = trail(shape, path, state.loops)
    node = way[-1].node if way else None
    return None if node is None or node.retry is None else node.retry.max_attempts


def _again(attempt: int, review: Outcome | None) -> Rounds:
    why, findings = _asked(review)
    text = f"round {attempt}"
    return Rounds(number=attempt, text=text, short=str(attempt), why=why, findings=findings)


def _loop(loop: LoopState, most: int | None, until: int | None) -> Rounds:
    why, findings = _lacking(loop) if loop.iteration > 1 or until is not None else ("", [])
    bound = "" if most is None else f" of {most}"
    # A stage counts its builds on when its work is sent back (workflows.md W68, W71).
    before = 0 if most is None or loop.limit is None else most - loop.limit
    number = before + loop.iteration
    return Rounds(
        number=number,
        text=f"round {number}{bound}",
        short=f"{number}{'' if most is None else f'/{most}'}",
        why=why,
        findings=findings,
        resumes_at=None if until is None else moment(until),
    )


def _lacking(loop: LoopState) -> tuple[str, list[str]]:
    """Why the loop did not end with the round before: an error, its condition, or its review."""
    last = loop.before if loop.body is None else loop.body
    if loop.raises and last is not None and last.error is not None:
        return first_line(f"The round before failed: {last.error.get('message') or ''}"), []
    gate = loop.last_gate
    if gate is not None and not gate.met:
        told = f": {gate.reason}" if gate.reason else ""
        return first_line(f"its condition was not met{told}"), []
    if loop.rejected is not None:
        return _asked(loop.rejected)
    return ("" if last is None else first_line(last.summary or "")), []


def _asked(review: Outcome | None) -> tuple[str, list[str]]:
    """What a review wants to be different."""
    if review is None:
        return "", []
    revision: Any = review.revision
    if revision is None:
        return first_line(review.summary or ""), []
    findings = [words.finding(one.to_json()) for one in revision.findings[:MAX_FINDINGS]]
    by = f"{revision.source}: " if revision.source else ""
    why = first_line(by + (revision.reason or review.summary or ""))
    # One finding that only repeats the reason says nothing new.
    if len(findings) == 1 and visible(revision.reason or "") in findings[0]:
        findings = []
    return why, findings
