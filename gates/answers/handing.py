"""A question is given to one person to answer: by somebody else, or on by its holder.

Whoever is named holds the claim from then on, as if they had taken it themselves; nobody is named
who may not answer.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User

from gates import access
from gates.answers.acting import kept_from, need_reason, note_of
from gates.answers.holding import Question
from gates.errors import GateError, NotAssignable
from gates.models import Request
from gates.principals import Principal
from runs import record
from runs.kernel.events import EventKind


def assign(pk: UUID, *, principal: Principal, to: str, reason: str = "") -> Request:
    """Give an open question to the person with this username.

    Operators may, and people who may answer it themselves; from another holder only operators
    take it, with a reason.
    """
    row = access.find(principal, pk)
    named = _person(to)
    note = note_of(reason)
    with record.turn(row.run_id, actor=principal.actor, surface=principal.surface) as turn:
        question = Question.locked(turn, pk)
        refusal: Exception | None = access.refusal_to_assign(principal, question.row)
        if refusal is not None:
            question.note_refused(str(refusal))
        refusal = (
            refusal or question.not_open(even_cancelled=False) or _not_theirs(question, named, to)
        )
        holder = question.held.router_id if question.held_by_somebody() else None
        if refusal is None and holder is not None and holder != named.actor:
            refusal = None if access.may_operate(principal) else question.held_by_somebody()
            if refusal is None:
                note = need_reason(reason)
        if refusal is None and holder != named.actor:
            _hand_over(question, EventKind.ASSIGNED, named, note)
    if refusal is not None:
        raise refusal
    return question.row


def delegate(
    pk: UUID, *, principal: Principal, to: str, reason: str = "", token: str | None = None
) -> Request:
    """Hand a question that one holds on to the person with this username."""
    row = access.find(principal, pk)
    named = _person(to)
    note = note_of(reason)
    with record.turn(row.run_id, actor=principal.actor, surface=principal.surface) as turn:
        question = Question.locked(turn, pk)
        refusal = (
            kept_from(principal, question, "claim", "answer")
            or question.not_open(even_cancelled=False)
            or question.not_claimed()
            or question.not_theirs(principal.actor, token)
            or _not_theirs(question, named, to)
        )
        if refusal is None and question.held.router_id != named.actor:
            _hand_over(question, EventKind.DELEGATED, named, note)
    if refusal is not None:
        raise refusal
    return question.row


def _hand_over(question: Question, kind: str, named: Principal, note: str) -> None:
    before = question.held.router_id if question.held_by_somebody() else None
    question.release()
    question.note(
        kind,
        to=named.actor,
        **({"from": before} if before else {}),
        **({"reason": note} if note else {}),
    )
    question.claim(named.actor)


def _person(username: str) -> Principal:
    """Whoever signs in by this name, or nobody at all."""
    name = username.strip() if isinstance(username, str) else ""
    user = None if "\0" in name else User.objects.filter(username=name, is_active=True).first()
    return Principal(actor="nobody", surface="") if user is None else Principal.for_user(user)


def _not_theirs(question: Question, named: Principal, to: str) -> GateError | None:
    """Nobody is given what they may not answer; whether there is such a person is not told."""
    if access.refusal_to_answer(named, question.row) is not None:
        return NotAssignable(f"Nobody called {to.strip()!r} may answer this question.")
    return question.no_seat_left(named)
