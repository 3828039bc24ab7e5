"""What the gates refuse, and why. `code` is public and stable."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Self

from gates.models import Request
from gates.principals import actor_label

FieldFault = tuple[str, str]


class GateError(Exception):
    """Base of the refusals: a message for people, and the facts behind it for programs."""

    code: ClassVar[str] = ""
    field: str | None = None

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class Missing(GateError):
    """The record of the run holds no such question."""

    code = "missing"


class AlreadyClaimed(GateError):
    """Somebody holds this question."""

    code = "claimed"

    @classmethod
    def by(cls, holder: str, at: datetime | None) -> Self:
        who = actor_label(holder)
        since = f" since {_clock(at)}" if at else ""
        return cls(
            f"{who} holds this question{since}. It can be claimed once it is released.",
            holder=holder,
            claimedAt=_wire(at),
        )


class NotClaimed(GateError):
    """Nobody holds this question, so there is no claim to use."""

    code = "not-claimed"


class NotOwner(GateError):
    """The question is held under another claim."""

    code = "not-owner"


class StaleDigest(GateError):
    """The answer is for another question than the one that is asked."""

    code = "stale"


class Superseded(GateError):
    """A newer question took this one's place."""

    code = "superseded"

    @classmethod
    def by(cls, newer: str, pk: object | None) -> Self:
        return cls(
            "This question was replaced by a newer one. Answer that one.",
            supersededBy=newer,
            id=None if pk is None else str(pk),
        )


class AlreadyAnswered(GateError):
    """The question has its answer."""

    code = "answered"

    @classmethod
    def of(cls, row: Request, response: Any) -> Self:
        who = actor_label(row.answered_by)
        return cls(
            f"{who} answered this question at {_clock(row.answered_at)}. It takes one answer.",
            actor=row.answered_by,
            at=_wire(row.answered_at),
            response=response,
        )

    @classmethod
    def partly(cls, response: Any, at: datetime | None, actor: str, left: int) -> Self:
        more = "one more person" if left == 1 else f"{left} more people"
        return cls(
            f"You have answered this question, or somebody did in your place. It waits for {more}.",
            actor=actor,
            at=_wire(at),
            response=response,
        )


class TeamHasAnswered(GateError):
    """Somebody of this person's team has answered, and another team has to."""

    code = "team-answered"


class NotAssignable(GateError):
    """The person cannot be given this question."""

    code = "not-assignable"
    field = "to"


class DeputyRefused(GateError):
    """That person cannot answer for another, or not for so long."""

    code = "deputy"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class PolicyChanged(GateError):
    """What was decided may not be decided any more."""

    code = "policy-changed"


class Expired(GateError):
    """The question's time is over."""

    code = "expired"

    @classmethod
    def at(cls, moment: datetime | None) -> Self:
        return cls(f"This question could be answered until {_clock(moment)}.", at=_wire(moment))


class Cancelled(GateError):
    """The question was withdrawn, or its run was cancelled."""

    code = "cancelled"


class AnswerRefused(GateError):
    """The answer does not fit the question; `fields` names each fault."""

    code = "invalid"

    def __init__(self, fields: Sequence[FieldFault]) -> None:
        super().__init__(
            told(fields), fields=[{"field": name, "message": text} for name, text in fields]
        )
        self.fields = list(fields)
        self.field = next((name for name, _ in fields if name), None)


class SchemaRefused(GateError):
    """The response schema cannot be checked, or no answer could pass it."""

    code = "schema"
    field = "responseSchema"


class DefinitionRefused(GateError):
    """The question cannot be asked as it is written."""

    code = "definition"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class ReasonMissing(GateError):
    """A rescue is recorded with its reason."""

    code = "reason"
    field = "reason"


class CursorRefused(GateError):
    """The cursor is not one that a list handed out."""

    code = "cursor"
    field = "cursor"


class KeyRefused(GateError):
    """The key cannot be made like that."""

    code = "key"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def told(fields: Sequence[FieldFault]) -> str:
    """All faults as one text."""
    return " ".join(f"{name}: {text}" if name else text for name, text in fields)


def _clock(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else "an unknown time"


def _wire(at: datetime | None) -> str | None:
    if at is None:
        return None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
