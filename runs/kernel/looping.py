"""What follows in a loop: its checks, its next round, its review, its end (runs.md section 8).

Nothing here holds a worker. A check that is the author's code is handed out like a step, and a
delay is a time in the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from runs.kernel import loop_bounds, loop_events, spending
from runs.kernel.conditions import ConditionResult, evaluate, is_data
from runs.kernel.errors import LoopError
from runs.kernel.events import EventKind, Path
from runs.kernel.graph import LeafShape, LoopShape, Shape
from runs.kernel.loop_events import AFTER, COMPLETE
from runs.kernel.loops import LoopState
from runs.kernel.loopshape import FILES
from runs.kernel.outcomes import Outcome, Status
from runs.kernel.panels import is_fatal
from runs.kernel.slots import REVIEW

if TYPE_CHECKING:
    from runs.kernel.decide import Decision, Progress

BUSY: Final = "busy"
WAITING: Final = "waiting"


def advance(
    turn: Decision, shape: LoopShape, path: Path, invocation: int, *, room: bool
) -> Progress:
    """How far the loop at `path` is; records what follows."""
    state = turn.state.loops.get(path)
    if state is None or state.invocation != invocation or state.anew:
        bound: dict[str, Any] = {} if shape.max is None else {"max": shape.max}
        if shape.keeps_rounds and shape.max is not None:
            bound = {"max": shape.max - _used(turn, path), "keeps": True}
        turn.record(EventKind.LOOP_START, path, depth=_depth(path), **bound)
        return BUSY
    return _Loop(turn, shape, path, state, room=room).advance()


def current(shape: LoopShape, state: LoopState) -> Shape:
    """The job that stands at the loop's path now."""
    return shape.review if state.in_review and shape.review is not None else shape.body


def pause_of(turn: Decision, shape: LoopShape, path: Path) -> Outcome:
    """What the loop shows while it waits: what its body or review waits for."""
    state = turn.state.loops[path]
    return _paused(state) or turn.pause_of(current(shape, state), path)


def leave(turn: Decision, shape: LoopShape, path: Path) -> Outcome:
    """Record that the session leaves the loop at a question; a later one carries on (R250)."""
    state = turn.state.loops[path]
    outcome = _paused(state) or turn.leave_job(current(shape, state), path)
    turn.record(EventKind.LOOP_END, path, outcome=outcome.to_json(), iterations=state.iteration)
    return outcome


def _paused(state: LoopState) -> Outcome | None:
    """The pause of a body or review that asked nobody."""
    ended = state.review if state.in_review else state.body
    return ended if ended is not None and ended.status == "paused" else None


def _depth(path: Path) -> int:
    return (len(path) + 1) // 2


def _used(turn: Decision, path: Path) -> int:
    """The refinements that the stage with these rounds has had in this graph (W68)."""
    scope = turn.state.scopes.get(path[:-2])
    if scope is None:
        return 0
    return scope.accepted.get(path[-2], 0) + scope.reworked.get(path[-2], 0)


class _Loop:
    """One look at one loop."""

    def __init__(
        self, turn: Decision, shape: LoopShape, path: Path, state: LoopState, *, room: bool
    ) -> None:
        self.turn = turn
        self.shape = shape
        self.path = path
        self.state = state
        self.room = room

    @property
    def cancelled(self) -> bool:
        return self.turn.state.cancelled

    def advance(self) -> Progress:
        state = self.state
        if state.ended is not None:
            return self._completed(state.ended)
        if state.error is not None:
            return self._end(_failed(state.error, state.body))
        match state.phase:
            case "before":
                return self._before()
            case "body":
                return self._body()
            case "review":
                return self._review()
            case _:
                return self._reviewed()

    # --- before the first round ------------------------------------------------------------------

    def _before(self) -> Progress:
        if self.cancelled:
            return self._end(Outcome(status="aborted", summary="cancelled before its first round"))
        if self.shape.start is not None:
            started = self.state.verdicts.get("start")
            if started is None:
                return self._check("start")
            if not started.met:
                return self._end(Outcome(status="aborted", summary=started.reason))
        if self.shape.check_first:
            verdict = self.state.verdicts.get("until")
            if verdict is None:
                return self._check("until")
            if verdict.met:
                return self._accept()
        return self._next()

    # --- one round -------------------------------------------------------------------------------

    def _body(self) -> Progress:
        body = self.state.body
        progress = self._inner(self.shape.body, body)
        if progress is not None:
            # An outcome without a body's end: it never began, for a cancel came first.
            return self._end(progress) if isinstance(progress, Outcome) else progress
        assert body is not None
        if self.cancelled:
            return self._end(_cancelled(body))
        if body.status == "paused":
            return WAITING
        if over := self._gives_up(body):
            return self._end(over)
        if self.shape.looks_after and not self.state.looked:
            return self._hand_out(AFTER)
        for which in ("stopOn", "until"):
            if self.shape.condition(which) is not None and which not in self.state.verdicts:
                return self._check(which)
        stop = self.state.verdicts.get("stopOn")
        if stop is not None and stop.met:
            ended = Outcome(status="aborted", summary=stop.reason, data=body.data)
            return self._end(ended)
        return self._accept() if self._met() else self._again()

    def _inner(self, job: Shape, ended: Outcome | None) -> Progress | None:
        """How far the body or the review is; None once it has come to its end.

        A step that failed may be tried again, which only a look at its place tells.
        """
        if ended is not None and not isinstance(job, LeafShape):
            return None
        progress = self.turn.job(job, self.path, room=self.room)
        return None if ended is not None and isinstance(progress, Outcome) else progress

    def _gives_up(self, body: Outcome) -> Outcome | None:
        """A body that cannot be mended by another round ends the loop (runs.md R162, R163)."""
        if self.state.raised:
            rule = self.shape.retry
            if rule is None:
                return None
            spent = rule.max_consecutive is not None and self.state.raises >= rule.max_consecutive
            return body if rule.fails or spent else None
        if body.status == "fail" and body.error is not None and not body.retryable:
            return replace(body, revision=loop_bounds.kept(body.revision))
        if self.state.keeps and not body.passed and not _asks_for_a_round(body):
            return replace(body, revision=loop_bounds.kept(body.revision))
        return None

    def _met(self) -> bool:
        """The condition decides even when the body failed; without one the body does (R153)."""
        verdict = self.state.verdicts.get("until")
        if verdict is not None:
            return verdict.met
        return self.state.body is not None and self.state.body.passed

    def _accept(self) -> Progress:
        if self.cancelled:
            return self._end(_cancelled(self.state.body))
        if self.shape.review is None:
            return self._end(self._passed())
        return self._begin(EventKind.STEP_READY, task=REVIEW)

    def _passed(self) -> Outcome:
        """The loop's pass: words of the review, data of the body (runs.md R155, R156)."""
        body, review = self.state.body, self.state.review
        gate = self.state.verdicts.get("until")
        words = review if review is not None and review.summary is not None else body
        sure = [gate.confidence if gate is not None else None]
        if review is not None:
            sure.insert(0, review.confidence)
        elif body is not None:
            sure.append(body.confidence)
        summary = words.summary if words is not None else gate.reason if gate is not None else None
        return Outcome(
            status="pass",
            summary=summary,
            data=None if body is None else body.data,
            confidence=next((it for it in sure if it is not None), None),
            late=any(it is not None and it.late for it in (body, review)),
            open_findings=() if review is None else review.open_findings,
        )

    # --- the review ------------------------------------------------------------------------------

    def _review(self) -> Progress:
        assert self.shape.review is not None
        review = self.state.review
        progress = self._inner(self.shape.review, review)
        if progress is not None:
            return self._end(progress) if isinstance(progress, Outcome) else progress
        assert review is not None
        if self.cancelled:
            return self._end(_cancelled(self.state.body))
        if review.status == "paused":
            return WAITING
        if self.state.raised:
            return self._end(_failed({**(review.error or {}), "phase": "review"}, self.state.body))
        if self.state.keeps and is_fatal(review):
            return self._end(replace(review, data=None))
        goes_on = not review.passed and loop_bounds.spent(self.shape, self.state, review) is None
        spent = spending.at(
            self.turn.state.purses, self.path, (self.state.invocation, self.state.iteration)
        )
        self.turn.record(
            EventKind.LOOP_REVIEW,
            self.path,
            outcome=review.to_json(),
            accepted=goes_on,
            **spent.figures(),
        )
        return BUSY

    def _reviewed(self) -> Progress:
        review = self.state.review
        assert review is not None
        if review.passed:
            return self._end(self._passed())
        if self.cancelled:
            return self._end(_cancelled(self.state.body))
        return self._again()

    # --- another round, or the last --------------------------------------------------------------

    def _again(self) -> Progress:
        spent = loop_bounds.spent(
            self.shape, self.state, self.state.review if self.state.phase == "reviewed" else None
        )
        if spent is None:
            return self._next()
        if spent.stall is not None:
            self.turn.record(
                EventKind.LOOP_STALL,
                self.path,
                iteration=self.state.iteration,
                report=dict(spent.stall),
            )
        return self._end(spent)

    def _next(self) -> Progress:
        if self.cancelled:
            return self._end(_cancelled(self.state.body))
        wait = self._wait_ms()
        if wait:
            until = self.turn.state.waits.get(self.path)
            if until is None:
                self.turn.record(
                    EventKind.LOOP_WAIT,
                    self.path,
                    iteration=self.state.iteration,
                    waitMs=wait,
                    resumeAt=self.turn.now + wait,
                )
                return BUSY
            if self.turn.now < until:
                return BUSY
        if self.room and loop_bounds.shows_nothing(self.shape, self.state):
            text = f"{self.shape.name}: its last rounds showed nothing that could stall."
            self.turn.record(EventKind.LOG, (), level="warn", message=text)
        return self._begin(EventKind.LOOP_ITERATION, iteration=self.state.iteration + 1)

    def _begin(self, kind: EventKind, **fields: Any) -> Progress:
        """Begin new work, when the graph around has a slot free for it (runs.md R116)."""
        if not self.room:
            return WAITING
        self.turn.record(kind, self.path, **fields)
        return BUSY

    def _wait_ms(self) -> int:
        if not self.state.iteration:
            return 0
        if self.state.raised and self.shape.retry is not None and self.shape.retry.backoff_ms:
            return self.shape.retry.backoff_ms
        return self.shape.delay_ms

    # --- checks ----------------------------------------------------------------------------------

    def _check(self, which: str) -> Progress:
        """Ask a condition: data is decided here, code by a worker."""
        shape = self.shape.condition(which)
        assert shape is not None
        if not is_data(shape):
            return self._hand_out(which)
        found: ConditionResult | LoopError
        try:
            found = evaluate(shape, {}, self.state.body)
        except LoopError as error:
            error.phase = error.phase or which
            found = error
        self.turn.events += loop_events.ended(
            self.path, which, self.state.iteration, found, self.turn.now
        )
        return BUSY

    def _hand_out(self, task: str) -> Progress:
        check = self.turn.state.checks.get((task, self.path))
        if check is not None and check.status in ("queued", "running"):
            if check.status == "queued" and self.cancelled:
                return self._end(_cancelled(self.state.body))
            return BUSY
        if self.cancelled:
            return self._end(_cancelled(self.state.body))
        number = 1 if check is None else check.number + 1
        return self._begin(EventKind.STEP_READY, task=task, number=number)

    # --- the end ---------------------------------------------------------------------------------

    def _end(self, outcome: Outcome) -> str:
        self.turn.record(
            EventKind.LOOP_END,
            self.path,
            outcome=outcome.to_json(),
            iterations=self.state.iteration,
        )
        return BUSY

    def _completed(self, outcome: Outcome) -> Progress:
        """`on_complete` is called once, whatever came of the loop (runs.md R148)."""
        if not self.shape.on_complete or self.cancelled or outcome.status == "paused":
            return outcome
        check = self.turn.state.checks.get((COMPLETE, self.path))
        number = self.state.invocation
        if check is None or check.number < number:
            self.turn.record(EventKind.STEP_READY, self.path, task=COMPLETE, number=number)
            return BUSY
        # One that was lost may have been called: it is not called twice.
        return outcome if check.status in ("ended", "lost") else BUSY


def _asks_for_a_round(body: Outcome) -> bool:
    """Whether a stage's own check, and not its writer, wants the work done again."""
    return body.revision is not None and body.revision.source == FILES


def _cancelled(body: Outcome | None) -> Outcome:
    data = None if body is None else body.data
    return Outcome(status="aborted", summary="cancelled", data=data)


def _failed(error: Mapping[str, Any], body: Outcome | None) -> Outcome:
    status: Status = "aborted" if error.get("code") == "ABORTED" else "fail"
    data = None if body is None else body.data
    return Outcome(status=status, summary=str(error.get("message")), error=error, data=data)
