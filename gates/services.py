"""What people and programs do to questions: claim, release, answer, rescue.

Every act is one turn of the question's run, decided by the kernel's own operations on the folded
record. The row's constraints and its conditional UPDATE (gates/projector.py) come after, in the
same transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from gates import access, holding
from gates.errors import AnswerRefused, GateError, NotOwner, ReasonMissing, StaleDigest
from gates.external import post_request
from gates.holding import Question
from gates.models import Request
from gates.principals import Principal, fresh, router_of
from gates.projection import TIME_KINDS
from gates.receipts import Receipt, next_of
from runs import record
from runs.kernel import callbacks
from runs.kernel.callback_events import rejected, released
from runs.kernel.events import EventKind
from runs.kernel.gate import MAX_DEFINITION_DEPTH
from runs.kernel.jsonable import JSONValue, json_equal, snapshot, thaw
from runs.validation import Fault, faults_of

__all__ = [
    "Claimed",
    "Receipt",
    "claim",
    "expire_due",
    "force_release",
    "post_request",
    "release",
    "submit",
    "withdraw",
]

MAX_REASON = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A claim won. Only the claimer sees the token."""

    token: str
    request: Request


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer and its faults, found while the run is not locked: others wait for its lock."""

    value: JSONValue
    schema: Any
    faults: list[Fault]

    @classmethod
    def checked(cls, row: Request, value: JSONValue) -> Self:
        return cls(value, row.response_schema, faults_of(row.response_schema, value))

    def faults_for(self, schema: Any) -> list[Fault]:
        """The faults by the record's own schema, which the row's should be the copy of."""
        return self.faults if json_equal(schema, self.schema) else faults_of(schema, self.value)


def claim(
    pk: UUID, *, principal: Principal, router_id: str | None = None, even_cancelled: bool = False
) -> Claimed:
    """Take the question; of many at once exactly one wins."""
    row = access.find(principal, pk)
    router = router_of(principal, router_id)
    with record.turn(row.run_id, actor=router, surface=principal.surface) as turn:
        question = Question.locked(turn, pk)
        refusal = _may_not(principal, question, "claim", "answer") or question.not_open(
            even_cancelled=even_cancelled
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
        refusal = _may_not(principal, question, "claim", "answer")
        if refusal is None:
            refusal = question.not_claimed() or question.not_theirs(principal.actor, token)
        if refusal is None:
            question.release()
    if refusal is not None:
        raise refusal
    return question.row


def submit(
    pk: UUID,
    *,
    principal: Principal,
    token: str | None,
    digest: str,
    response: object,
    even_cancelled: bool = False,
    router_id: str | None = None,
) -> Receipt:
    """Answer the question.

    Without a token the caller's own claim is used; when nobody holds the question, claim and
    answer are one act, and a wrong answer leaves no claim behind. `digest` says which question
    the answer is for. Raises JsonValueError for a response that is not JSON.
    """
    row = access.find(principal, pk)
    router = router_of(principal, router_id)
    answer = _Answer.checked(row, snapshot(response, max_depth=MAX_DEFINITION_DEPTH))
    with record.turn(row.run_id, actor=router, surface=principal.surface) as turn:
        question = Question.locked(turn, pk)
        # Rights are read anew under the lock: they may have gone while the page was open.
        refusal = (
            _may_not(fresh(principal), question, "answer")
            or question.not_open(even_cancelled=even_cancelled)
            or _submit_in(question, router, token, digest, answer)
        )
    if refusal is not None:
        raise refusal
    submitted = next(event for event in reversed(turn.events) if event.kind == EventKind.SUBMITTED)
    return Receipt(
        request_pk=pk,
        response=thaw(submitted.fields["response"]),
        seq=submitted.seq,
        at=turn.now,
        actor=router,
        next=next_of(question.row, turn.run, turn.state),
    )


def _submit_in(
    question: Question,
    router: str,
    token: str | None,
    digest: str,
    answer: _Answer,
) -> GateError | None:
    """The answer's own part of the turn: what has to be recorded is, the refusal comes back."""
    in_one_act = token is None and question.held.router_id != router
    refusal: GateError | None
    if in_one_act:
        question.free_if_cancelled()
        refusal = question.held_by_somebody()
    elif question.held.router_id == router:
        refusal = question.not_theirs(router, token)
    else:
        refusal = question.not_claimed() or NotOwner("This question is held by somebody else.")
    if refusal is not None:
        return refusal
    if digest != question.held.request.digest:
        return StaleDigest("This answer is for another question. Read the question again.")
    mark = question.claim(router) if in_one_act else str(question.held.claim_token)
    request_id = question.held.request.request_id
    faults = answer.faults_for(thaw(question.held.request.response_schema))
    if not faults:
        result, events = callbacks.submit(
            question.turn.state.callbacks,
            request_id,
            claim_token=mark,
            router_id=router,
            request_digest=digest,
            response=answer.value,
        )
        if result.ok:
            question.record(events)
            return None
        faults = [("", str(result.reason))]
    refused = AnswerRefused(faults)
    question.record([rejected(request_id, router, refused.message)])
    if in_one_act:
        question.record([released(request_id, router)])
    return refused


def force_release(pk: UUID, *, principal: Principal, reason: str) -> Request:
    """Take the claim from whoever holds it; the old token is dead (design D3)."""
    row = access.find(principal, pk)
    if not access.may_operate(principal):
        raise access.Forbidden("Only an operator takes a claim from somebody else.")
    why = _reason(reason)
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
    why = _reason(reason)
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


def _may_not(principal: Principal, question: Question, *scopes: str) -> Exception | None:
    """Refuse somebody who may only look, and keep in the record that it was tried."""
    why = access.why_not_answer(principal, question.row, *scopes)
    if not why:
        return None
    question.note_refused(why)
    return access.Forbidden(why)


def _reason(given: str) -> str:
    reason = given.strip() if isinstance(given, str) else ""
    if not reason:
        raise ReasonMissing("Say why: the reason is recorded with your name.")
    if len(reason) > MAX_REASON:
        raise ReasonMissing(f"The reason is longer than {MAX_REASON} characters.")
    return reason
