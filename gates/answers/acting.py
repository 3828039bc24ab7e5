"""What every act on a question needs: leave to act, and a reason where one is recorded."""

from __future__ import annotations

from typing import Final

from gates import access
from gates.answers.holding import Question
from gates.errors import ReasonMissing
from gates.principals import Principal

MAX_REASON: Final = 2_000


def kept_from(principal: Principal, question: Question, *scopes: str) -> Exception | None:
    """What keeps somebody from acting, and the record keeps that it was tried."""
    refusal = access.refusal_to_answer(principal, question.row, *scopes)
    if refusal is not None:
        question.note_refused(str(refusal))
    return refusal


def need_reason(given: str) -> str:
    """The reason as it goes into the record; raises ReasonMissing."""
    reason = given.strip() if isinstance(given, str) else ""
    if not reason:
        raise ReasonMissing("Say why: the reason is recorded with your name.")
    if len(reason) > MAX_REASON:
        raise ReasonMissing(f"The reason is longer than {MAX_REASON} characters.")
    return reason


def note_of(given: str) -> str:
    """A reason that may be left out."""
    return need_reason(given) if isinstance(given, str) and given.strip() else ""
