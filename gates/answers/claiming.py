"""Claims: a question is taken by one router at a time, and given back."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from gates import access
from gates.answers.acting import kept_from
from gates.answers.holding import Question
from gates.models import Request
from gates.principals import Principal, router_of
from runs import record


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A claim won. Only the claimer sees the token."""

    token: str
    request: Request


def claim(
    pk: UUID, *, principal: Principal, router_id: str | None = None, even_cancelled: bool = False
) -> Claimed:
    """Take the question; of many at once exactly one wins."""
    row = access.find(principal, pk)
    router = router_of(principal, router_id)
    with record.turn(row.run_id, actor=router, surface=principal.surface) as turn:
        question = Question.locked(turn, pk)
        refusal = (
            kept_from(principal, question, "claim", "answer")
            or question.not_open(even_cancelled=even_cancelled)
            or question.no_seat_left(principal)
        )
        if refusal is None:
            question.free_if_cancelled()
            refusal = question.held_by_somebody()
        if refusal is None:
            mark = question.claim(router)
    # What a refusal has to leave in the record is committed before it is raised.
    if refusal is not None:
        raise refusal
    # The turn brought its row up to date.
    return Claimed(token=question.token_of(mark, router), request=question.row)


def release(pk: UUID, *, principal: Principal, token: str | None = None) -> Request:
    """Give the claim back, with its token; the holder itself needs none."""
    row = access.find(principal, pk)
    with record.turn(row.run_id, actor=principal.actor, surface=principal.surface) as turn:
        question = Question.locked(turn, pk)
        refusal = kept_from(principal, question, "claim", "answer")
        if refusal is None:
            refusal = question.not_claimed() or question.not_theirs(principal.actor, token)
        if refusal is None:
            question.release()
    if refusal is not None:
        raise refusal
    return question.row
