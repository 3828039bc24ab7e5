"""Rescues of questions: a claim taken away, a question taken back, a time that is over."""

from __future__ import annotations

from uuid import UUID

from gates import access
from gates.answers import holding
from gates.answers.acting import need_reason
from gates.answers.holding import Question
from gates.models import Request
from gates.principals import Principal
from gates.projection import TIME_KINDS
from runs import record
from runs.kernel.events import EventKind


def force_release(pk: UUID, *, principal: Principal, reason: str) -> Request:
    """Take the claim from whoever holds it; the old token is dead (design D3)."""
    row = access.find(principal, pk)
    if not access.may_operate(principal):
        raise access.Forbidden("Only an operator takes a claim from somebody else.")
    why = need_reason(reason)
    with record.turn(row.run_id, actor=principal.actor, surface=principal.surface) as turn:
        question = Question.locked(turn, pk)
        if refusal := question.not_claimed():
            raise refusal
        holder = str(question.held.router_id)
        question.release()
        question.note(EventKind.FORCE_RELEASED, routerId=holder, reason=why)
    return question.row


def withdraw(pk: UUID, *, principal: Principal, reason: str) -> Request:
    """Take the question back; it can be asked again, and a step that waited for it fails."""
    row = access.find(principal, pk)
    if not access.may_withdraw(principal, row):
        raise access.Forbidden("Only an operator, or the program that asked, withdraws a question.")
    why = need_reason(reason)
    with record.turn(row.run_id, actor=principal.actor, surface=principal.surface) as turn:
        question = Question.locked(turn, pk)
        refusal = question.not_open(even_cancelled=True)
        if refusal is None:
            question.withdraw(why)
    if refusal is not None:
        raise refusal
    return question.row


def expire_due(limit: int = 100) -> int:
    """Let time pass for the open questions whose own is over; returns how many it changed.

    Their runs wake at that time by themselves: this finds those whose wake-up was lost.
    """
    changed = 0
    for run_id in holding.due(limit):
        # To open a turn is enough: time comes first in it, and an answer that was in time stays.
        with record.turn(run_id, surface="sweep") as turn:
            changed += sum(event.kind in TIME_KINDS for event in turn.events)
    return changed
