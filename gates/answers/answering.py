"""Answers: by one person, by several, or in an emergency by somebody who was not asked.

Whoever answers first is the one who has answered. Where several people have to (design D14), each
answer is recorded by itself and the question stays open, until the last one that is needed or the
first no: that one is the answer that its asker gets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self
from uuid import UUID

from gates import access
from gates.actions import cards
from gates.answers import looking
from gates.answers.acting import kept_from, need_reason
from gates.answers.holding import Question
from gates.errors import AlreadyAnswered, AnswerRefused, GateError, NotOwner, StaleDigest
from gates.models import Request, Response
from gates.principals import Principal, fresh, router_of
from gates.receipts.next_steps import Receipt, next_of
from gates.reviews import rich
from gates.reviews.open_findings import unseen
from runs import record, traces, tries
from runs.inputs.validation import Fault, faults_of
from runs.kernel import callbacks
from runs.kernel.answers import refusal as kernel_refusal
from runs.kernel.callback_events import rejected, released
from runs.kernel.events import EventKind
from runs.kernel.gate import MAX_DEFINITION_DEPTH
from runs.kernel.jsonable import JSONValue, json_equal, snapshot, thaw
from runs.kernel.tallies import Given, is_no
from runs.record import Turn


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer and its faults, found while the run is not locked: others wait for its lock."""

    value: JSONValue
    schema: Any
    faults: list[Fault]

    @classmethod
    def checked(cls, row: Request, response: object, who: Principal) -> Self:
        value = snapshot(response, max_depth=MAX_DEFINITION_DEPTH)
        value, faults = rich.prepared(row, value, who)
        return cls(value, row.response_schema, faults or faults_of(row.response_schema, value))

    def faults_for(self, question: Question) -> list[Fault]:
        """The faults by the record's own schema, which the row's should be the copy of."""
        schema = thaw(question.held.request.response_schema)
        faults = self.faults if json_equal(schema, self.schema) else faults_of(schema, self.value)
        if faults:
            return faults
        reason = kernel_refusal(question.held.request.response_schema, self.value)
        return [] if reason is None else [("", reason)]

    def refusal_for(self, question: Question) -> AnswerRefused | None:
        faults = self.faults_for(question)
        return AnswerRefused(faults) if faults else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """Who answers, under which claim, and for which question."""

    principal: Principal
    router: str
    token: str | None
    digest: str
    answer: _Answer


@traces.within("obversa.answer", "question")
def submit(
    pk: UUID,
    *,
    principal: Principal,
    token: str | None,
    digest: str,
    response: object,
    even_cancelled: bool = False,
    router_id: str | None = None,
    seen: bool = False,
) -> Receipt:
    """Answer the question.

    `seen` says that its open findings were read; without it no yes counts where there are any.

    Without a token the caller's own claim is used; when nobody holds the question, claim and
    answer are one act, and a wrong answer leaves no claim behind. `digest` says which question
    the answer is for. The same answer once more from the same caller gets the first one's receipt
    (interactions.md I140). Raises JsonValueError for a response that is not JSON.
    """
    sight = looking.look(principal, pk)
    row = access.find(principal, pk) if sight is None else sight.row
    attempt = _Attempt(
        principal=principal,
        router=router_of(principal, router_id),
        token=token,
        digest=digest,
        answer=_Answer.checked(row, response, principal),
    )

    def answer(turn: Turn) -> tuple[Question, _Attempt, Exception | None]:
        # Rights are read anew once the run stands still: they may have gone while a page was open.
        if sight is not None and sight.still_holds(turn):
            question, who = sight.question_in(turn), sight.who
        else:
            question, who = Question.locked(turn, pk), fresh(principal)
        now = replace(attempt, principal=who)
        refusal = (
            kept_from(now.principal, question, "answer")
            or question.not_open(even_cancelled=even_cancelled)
            or question.no_seat_left(now.principal)
            or cards.refusal(question.row, now.answer.value)
            or unseen(turn.state, question.row, now.answer.value, seen=seen)
            or _submit_in(question, now)
        )
        return question, now, refusal

    question, attempt, refusal = tries.in_turn(
        row.run_id, answer, actor=attempt.router, surface=principal.surface
    )
    if isinstance(refusal, AlreadyAnswered):
        given = _same_again(question, attempt)
        if given is not None:
            return _stored(question, given)
    if refusal is not None:
        raise refusal
    return _receipt(question, attempt.router)


def _submit_in(question: Question, attempt: _Attempt) -> GateError | None:
    """The answer's own part of the turn: what has to be recorded is, the refusal comes back."""
    router, token = attempt.router, attempt.token
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
    if attempt.digest != question.held.request.digest:
        return StaleDigest("This answer is for another question. Read the question again.")
    if faults := attempt.answer.faults_for(question):
        return _refused(question, router, faults, in_one_act=in_one_act)
    if question.tally.needed > 1 and not _settles(question, attempt):
        question.release()
        return None
    _tell_deputy(question, attempt)
    if in_one_act:
        question.claim(router)
    _record_answer(question, router, attempt.answer)
    return None


def _refused(
    question: Question, router: str, faults: list[Fault], *, in_one_act: bool
) -> AnswerRefused:
    """A wrong answer stands in the record with its reason; a claim made for it does not stay."""
    if in_one_act:
        question.claim(router)
    refused = AnswerRefused(faults)
    question.record([rejected(question.request_id, router, refused.message)])
    if in_one_act:
        question.record([released(question.request_id, router)])
    return refused


def _settles(question: Question, attempt: _Attempt) -> bool:
    """Record one of several answers; whether it is the question's own."""
    value = thaw(attempt.answer.value)
    place = access.place_of(attempt.principal, question.row)
    given = Given(
        actor=access.person_of(attempt.principal),
        response=value,
        deputy_for=place.deputy_for,
        teams=place.teams,
    )
    settles = is_no(value) or question.tally.plus(given).is_met
    question.note(
        EventKind.RESPONDED,
        person=given.actor,
        response=value,
        teams=list(given.teams),
        settles=settles,
        **({"deputyFor": given.deputy_for} if given.deputy_for else {}),
    )
    return settles


def _tell_deputy(question: Question, attempt: _Attempt) -> None:
    """In whose place the answer is given; of several, each says so itself."""
    place = access.place_of(attempt.principal, question.row)
    if question.tally.needed == 1 and place.deputy_for:
        question.note(EventKind.DEPUTIZED, deputyFor=place.deputy_for)


def _record_answer(question: Question, router: str, answer: _Answer) -> None:
    """The answer in the contract's own event, under the claim that stands."""
    result, events = callbacks.submit(
        question.turn.state.callbacks,
        question.request_id,
        claim_token=str(question.held.claim_token),
        router_id=router,
        request_digest=question.held.request.digest,
        response=answer.value,
    )
    # Everything that it refuses was looked at before.
    assert result.ok, result.reason
    question.record(events)


def break_glass(
    pk: UUID,
    *,
    principal: Principal,
    digest: str,
    response: object,
    reason: str,
    seen: bool = False,
) -> Receipt:
    """Answer in an emergency what others were asked, whoever holds it and whoever is missing.

    Only a person with the permission `gates.break_glass` may, never a key. The reason is recorded
    in an event of its own, and the run is marked for good. `seen` is as in `submit`.
    """
    row = access.find(principal, pk)
    why = need_reason(reason)
    answer = _Answer.checked(row, response, principal)
    with record.turn(row.run_id, actor=principal.actor, surface=principal.surface) as turn:
        question = Question.locked(turn, pk)
        refusal: Exception | None = access.refusal_to_override(fresh(principal))
        if refusal is not None:
            question.note_refused(str(refusal))
        else:
            refusal = question.not_open(even_cancelled=False) or _stale(question, digest)
        refusal = (
            refusal
            or answer.refusal_for(question)
            or cards.refusal_in_emergency(question.row, answer.value)
            or unseen(turn.state, question.row, answer.value, seen=seen)
        )
        if refusal is None:
            tally = question.tally
            question.note(
                EventKind.OVERRIDDEN, reason=why, needed=tally.needed, responded=tally.count
            )
            question.release()
            question.claim(principal.actor)
            _record_answer(question, principal.actor, answer)
    if refusal is not None:
        raise refusal
    return _receipt(question, principal.actor)


def _stale(question: Question, digest: str) -> StaleDigest | None:
    if digest == question.held.request.digest:
        return None
    return StaleDigest("This answer is for another question. Read the question again.")


def _receipt(question: Question, router: str) -> Receipt:
    """What came of the answer that this turn recorded."""
    turn: Turn = question.turn
    own = (EventKind.SUBMITTED, EventKind.RESPONDED)
    recorded = next(event for event in reversed(turn.events) if event.kind in own)
    return Receipt(
        request_pk=question.row.pk,
        response=thaw(recorded.fields["response"]),
        seq=recorded.seq,
        at=turn.now,
        actor=router,
        next=next_of(question.row, turn.run, turn.state),
        needed=question.tally.needed,
        responded=_count(question),
        settled=question.held.response is not None,
    )


def _count(question: Question) -> int:
    return max(question.tally.count, int(question.held.response is not None))


def _same_again(question: Question, attempt: _Attempt) -> Response | None:
    """The caller's own answer, when this one is no other."""
    if attempt.digest != question.held.request.digest:
        return None
    own = (attempt.router, access.person_of(attempt.principal))
    for given in Response.objects.filter(request=question.row, actor__in=own).order_by("-seq"):
        before, now = rich.undated(given.response), rich.undated(attempt.answer.value)
        return given if json_equal(before, now) else None
    return None


def _stored(question: Question, given: Response) -> Receipt:
    return Receipt(
        request_pk=question.row.pk,
        response=given.response,
        seq=given.seq,
        at=given.at,
        actor=given.actor,
        next=next_of(question.row, question.turn.run, question.turn.state),
        needed=question.tally.needed,
        responded=_count(question),
        settled=question.held.response is not None,
        already_resolved=True,
    )
