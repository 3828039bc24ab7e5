"""Questions the kernel puts by itself: a person's decision, and what became of a lost step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from runs.kernel.clocks import expired_words
from runs.kernel.errors import LoopError
from runs.kernel.events import joined
from runs.kernel.gate import CallbackRequest, create_callback_gate
from runs.kernel.graph import AskShape
from runs.kernel.jsonable import JSONValue, canonical_json, frozen_object
from runs.kernel.outcomes import Finding, Outcome, failing, revision_request
from runs.kernel.redact import redact

# Frozen once: it is part of every approval's question.
APPROVAL_SCHEMA: Final = frozen_object(
    "The schema",
    {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}},
        "required": ["approved"],
    },
)
RECONCILE_SCHEMA: Final[Mapping[str, JSONValue]] = {
    "type": "object",
    "properties": {
        "action": {
            "type": "string",
            "enum": ["finished", "run-again", "fail"],
            "description": "What became of the step",
        },
        "data": {"description": "The step's data, when it finished"},
    },
    "required": ["action"],
}
# What such a step did was in a worktree of its own and never landed: it cannot have finished.
RECONCILE_APART_SCHEMA: Final[Mapping[str, JSONValue]] = {
    "type": "object",
    "properties": {
        "action": {
            "type": "string",
            "enum": ["run-again", "fail"],
            "description": "What to do with the step",
        },
    },
    "required": ["action"],
}
# Why a question has its end, where no person who was asked gave it (peers.md D10).
TIMED_OUT: Final = "timed_out"
OVERRIDDEN: Final = "overridden"
_FIELD: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill(question: str, params: Mapping[str, Any]) -> str:
    """The question with `{name}` replaced by the run's parameter of that name, where it has one."""

    def value(match: re.Match[str]) -> str:
        found = params.get(match[1])
        if isinstance(found, str):
            return found
        return canonical_json(found) if isinstance(found, bool | int | float) else match[0]

    return _FIELD.sub(value, question)


def fill_hints(hints: JSONValue, params: Mapping[str, Any]) -> JSONValue:
    """The presentation with every text in it filled like the question itself."""
    if isinstance(hints, str):
        return fill(hints, params)
    if isinstance(hints, Mapping):
        return {name: fill_hints(value, params) for name, value in hints.items()}
    if isinstance(hints, list | tuple):
        return [fill_hints(value, params) for value in hints]
    return hints


def default_input(needs: Mapping[str, Outcome], last: Outcome | None, *, in_graph: bool) -> Any:
    """What an approval is about when its author did not say (gates.md G98)."""
    if in_graph:
        return {
            name: outcome.summary if outcome.summary is not None else outcome.status
            for name, outcome in needs.items()
        }
    return None if last is None else last.summary


def approval_request(
    label: str,
    ask: AskShape,
    *,
    subject: Any,
    attempt: int,
    params: Mapping[str, Any],
    rounds: Sequence[int] = (),
) -> CallbackRequest:
    """The question of an approval step (gates.md G97, design D7). Raises JsonValueError.

    Asked anew for every attempt, it is a new question in every round of the loops around it too.
    """
    if ask.per_attempt:
        more = dict(subject) if isinstance(subject, Mapping) else {"subject": subject}
        subject = {**more, "attempt": attempt}
        if rounds:
            subject["round"] = rounds[0] if len(rounds) == 1 else list(rounds)
    return create_callback_gate(
        gate_id=label,
        gate_version=1,
        decision_text=fill(ask.question, params),
        response_schema=APPROVAL_SCHEMA,
        input=subject,
        presentation={name: fill_hints(hint, params) for name, hint in ask.presentation.items()},
    )


def approval_outcome(response: Mapping[str, Any], *, question: str, target: str | None) -> Outcome:
    """Yes passes; no goes to the target with the note as the finding (gates.md G100-G107)."""
    given = response.get("note")
    note = redact(given) if isinstance(given, str) and given.strip() else ""
    if response.get("approved") is True:
        data: dict[str, JSONValue] = {"approved": True}
        if note:
            data["note"] = note
        return Outcome(status="pass", summary=f"approved: {question}", data=data)
    note = note or f"refused: {question}"
    refused: JSONValue = {"approved": False, "note": note}
    if target is None:
        return Outcome(status="fail", summary=note, data=refused)
    return revision_request(
        target=target, reason=note, findings=[Finding(evidence=note)], data=refused
    )


def expired_outcome(over: Mapping[str, Any], *, question: str, target: str | None) -> Outcome:
    """What a question leads to that nobody answered in its time: a no, or its default answer.

    The words, and `expired` and `how` in the data, say that it was the clock and no person.
    """
    words = expired_words(over)
    answer = over.get("answer")
    given = dict(answer) if isinstance(answer, Mapping) else {"approved": False}
    own = given.get("note")
    given["note"] = f"{words}: {own}" if isinstance(own, str) and own.strip() else words
    outcome = approval_outcome(given, question=question, target=target)
    if outcome.status == "pass":
        outcome = outcome.evolve(summary=f"{words}: taken as approved by default")
    assert isinstance(outcome.data, Mapping)
    return outcome.evolve(data={**outcome.data, "expired": True, "how": TIMED_OUT})


def overridden_outcome(outcome: Outcome) -> Outcome:
    """The outcome of an answer that was given over the heads of those who were asked."""
    data = outcome.data if isinstance(outcome.data, Mapping) else {}
    return outcome.evolve(data={**data, "how": OVERRIDDEN})


def waiting_outcome(request: CallbackRequest, *, question: str) -> Outcome:
    """The pause of a step whose question is out (gates.md G104)."""
    return Outcome(
        status="paused",
        summary=f"waiting for a person: {question}",
        data=request.to_wire(),
    )


def dead_outcome(request: CallbackRequest, state: str) -> Outcome:
    """A step never waits for an answer nobody can give (gates.md G105)."""
    error = LoopError("VALIDATION", f"the question {request.gate_id} is {state}.", phase="body")
    return failing(error).evolve(data=request.to_wire())


def reconcile_request(
    path: tuple[str, ...], number: int, *, apart: bool = False
) -> CallbackRequest:
    """One question per interruption, however often it is met (design I5, runs.md R239, R240).

    A step that worked `apart`, in a worktree of its own, can run again or fail.
    """
    name = path[-1] if path else "the job"
    what = f"The step **{name}** was interrupted: its worker stopped before the result arrived."
    if apart:
        ask = (
            "It works in a git worktree of its own: what it did has not landed, and the worktree "
            "and its branch are still there. What now?\n\n"
            "- *run-again* starts it once more, in a new worktree\n"
        )
    else:
        ask = (
            "What became of it?\n\n"
            "- *finished* counts it as passed and does not run it again\n"
            "- *run-again* starts it once more\n"
        )
    return create_callback_gate(
        gate_id="reconcile:" + joined(path),
        gate_version=1,
        decision_text=f"{what} {ask}- *fail* ends it as failed",
        response_schema=RECONCILE_APART_SCHEMA if apart else RECONCILE_SCHEMA,
        input={"path": list(path), "start": number},
    )


def reconcile_outcome(response: Mapping[str, Any]) -> Outcome | None:
    """The outcome a person gave an interrupted step; None means it runs again."""
    match response.get("action"):
        case "finished":
            return Outcome(
                status="pass",
                summary="a person said that it finished",
                data=response.get("data"),
            )
        case "fail":
            error = LoopError("BODY", "The step was interrupted.", phase="body", retryable=False)
            return failing(error)
        case _:
            return None
