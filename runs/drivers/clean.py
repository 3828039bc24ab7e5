"""What a step hands over, made fit to be recorded: no secret enters an event (runs.md R227)."""

from __future__ import annotations

from typing import TypeVar

from runs.drivers.context import Context
from runs.kernel.conditions import ConditionResult
from runs.kernel.errors import LoopError
from runs.kernel.outcomes import Outcome
from runs.kernel.redact import redact
from runs.shapes.job import Asking

Error = TypeVar("Error", bound=LoopError)


def outcome(ctx: Context, given: Outcome) -> Outcome:
    """The outcome without secrets; the same object when it holds none."""
    wire = given.to_json()
    clean = ctx.scrubbed(wire)
    return given if clean == wire else Outcome.from_json(clean).frozen()


def result(ctx: Context, given: ConditionResult) -> ConditionResult:
    """What a condition found, without secrets."""
    return ConditionResult.from_json(ctx.scrubbed(given.to_json()))


def error(ctx: Context, given: Error) -> Error:
    """The same error, its text without secrets and addresses."""
    given.message = redact(ctx.scrubbed(given.message))
    given.args = (given.message,)
    return given


def question(ctx: Context, given: Asking) -> Asking:
    """The question as it was put: it cannot be changed, so one that holds a secret is refused."""
    for one in (given, *given.others):
        ctx.notes.refuse_secrets("the question", one.request.to_wire())
    return given
