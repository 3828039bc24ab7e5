"""One question inside a turn: where the record says it stands, and what may happen to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from django.db.models.functions import Now

from gates import columns
from gates.access import NotVisible, person_of, place_of
from gates.errors import (
    AlreadyAnswered,
    AlreadyClaimed,
    Cancelled,
    Expired,
    GateError,
    Missing,
    NotClaimed,
    NotOwner,
    Superseded,
    TeamHasAnswered,
)
from gates.models import Request, Response
from gates.principals import Principal
from gates.projection import is_closed
from runs.claims import claim_mark, claim_token, is_token
from runs.kernel import callbacks, quorums
from runs.kernel.callback_events import released
from runs.kernel.callbacks import CallbackStatus, Held, WireEvent
from runs.kernel.events import EventKind
from runs.kernel.jsonable import thaw
from runs.kernel.tallies import Tally
from runs.record import Turn
from runs.stored import append_all
from runs.turns import statements


@dataclass
class Question:
    """A question of the turn's run; the folded record decides, the row only names it."""

    turn: Turn
    row: Request
    request_id: str

    @classmethod
    def locked(cls, turn: Turn, pk: UUID) -> Self:
        """The question as it stands now that its run is locked."""
        found = statements.rows(Request, pk=pk, run_id=turn.run.pk)
        if not found:
            raise NotVisible(f"There is no question {pk} here.")
        return cls.of(turn, found[0])

    @classmethod
    def of(cls, turn: Turn, row: Request) -> Self:
        """The question of a row that is as it was after the last event before this turn."""
        row.run = turn.run
        turn.seen[row.request_id] = row
        request_id = columns.true_id(row, turn.state.callbacks.requests)
        if request_id not in turn.state.callbacks.requests:
            raise Missing(f"The record of run {turn.run.short} holds no such question.")
        return cls(turn, row, request_id)

    @property
    def held(self) -> Held:
        return self.turn.state.callbacks.requests[self.request_id]

    def not_open(self, *, even_cancelled: bool) -> GateError | None:
        """What keeps the question from being answered at all."""
        held, row = self.held, self.row
        if held.status is CallbackStatus.ANSWERED:
            return self._answered()
        # The turn has let time pass before this: what is over by now is closed in its record.
        if self.request_id in self.turn.state.expired or row.status == Request.Status.EXPIRED:
            return Expired.at(row.expires_at)
        if row.status == Request.Status.CANCELLED and not held.is_live:
            return Cancelled(f"This question was withdrawn: {row.closed_reason}")
        if held.status is CallbackStatus.SUPERSEDED:
            newer = Request.objects.filter(run=row.run_id, request_id=row.superseded_by).first()
            return Superseded.by(row.superseded_by, None if newer is None else newer.pk)
        if is_closed(self.turn.state) and not even_cancelled:
            return Cancelled(
                "The run was cancelled and its question kept. It can still be answered from the "
                "run's page, and that does not start the run."
            )
        return None

    @property
    def tally(self) -> Tally:
        """How many people have to answer, and who has."""
        return quorums.tally_of(self.turn.state, self.request_id)

    def no_seat_left(self, who: Principal) -> GateError | None:
        """What keeps somebody from being one of several: they have answered, or their team has."""
        tally = self.tally
        if tally.needed == 1:
            return None
        place = place_of(who, self.row)
        mine = tally.of(person_of(who)) or tally.of(place.deputy_for)
        if mine is not None:
            given = Response.objects.filter(request=self.row, actor=mine.actor).last()
            at = None if given is None else given.at
            left = tally.needed - tally.count
            return AlreadyAnswered.partly(thaw(mine.response), at, mine.actor, left)
        if not tally.advances(place.teams):
            return TeamHasAnswered(
                "Your team has answered this question; it waits for somebody of another team."
            )
        return None

    def _answered(self) -> AlreadyAnswered:
        answer = Response.objects.filter(request=self.row).last()
        return AlreadyAnswered.of(self.row, None if answer is None else answer.response)

    def held_by_somebody(self) -> AlreadyClaimed | None:
        held = self.held
        if held.status is not CallbackStatus.CLAIMED:
            return None
        return AlreadyClaimed.by(held.router_id or "", self.row.claimed_at)

    def not_claimed(self) -> NotClaimed | None:
        if self.held.status is CallbackStatus.CLAIMED:
            return None
        return NotClaimed("Nobody holds this question, so there is no claim to use.")

    def not_theirs(self, router: str, token: str | None) -> NotOwner | None:
        """A claim is shown by its token; its own holder is known without."""
        is_own = self.held.router_id == router if token is None else self.is_token(token)
        return None if is_own else NotOwner("This question is held under another claim.")

    def free_if_cancelled(self) -> None:
        """The claims of a cancelled run hold nobody back from answering it on purpose."""
        if is_closed(self.turn.state) and self.row.status == Request.Status.CANCELLED:
            self.release()

    def claim(self, router: str) -> str:
        """Claim the pending question; returns the mark from which the token is derived."""
        mark = claim_mark(self.turn.next_seq)
        result, events = callbacks.claim(self.turn.state.callbacks, self.request_id, router, mark)
        assert result.ok
        self.record(events)
        return mark

    def release(self) -> None:
        if self.held.status is CallbackStatus.CLAIMED:
            self.record([released(self.request_id, str(self.held.router_id))])

    def withdraw(self, reason: str) -> None:
        """Close the question for good; nothing replaces it, so it stands in its own place."""
        state = self.turn.state.callbacks
        self.record(callbacks.supersede(state, self.request_id, self.request_id))
        self.note(EventKind.WITHDRAWN, reason=reason)

    def note_refused(self, why: str) -> None:
        """Keep that somebody tried, and not what they sent (design section 4)."""
        self.note(EventKind.REFUSED, reason=why)

    def note(self, kind: str, **fields: Any) -> None:
        path = tuple(self.row.step_path)
        self.turn.append(kind, path, {"requestId": self.request_id, **fields})

    def record(self, events: list[WireEvent]) -> None:
        append_all(self.turn, tuple(self.row.step_path), [thaw(event) for event in events])

    def is_token(self, token: object) -> bool:
        """Whether this is the token of the claim that stands."""
        held, run_id = self.held, self.turn.run.pk
        if held.claim_token is None or held.router_id is None or not isinstance(token, str):
            return False
        try:
            return is_token(token, run_id, self.request_id, held.claim_token, held.router_id)
        except UnicodeEncodeError:
            return False

    def token_of(self, mark: str, router: str) -> str:
        return claim_token(self.turn.run.pk, self.request_id, mark, router)


def due(limit: int) -> list[UUID]:
    """The runs of open questions past their time, by the database's clock (design I14)."""
    late = Request.objects.filter(status__in=Request.OPEN, expires_at__lte=Now())
    return list(dict.fromkeys(late.order_by("expires_at").values_list("run_id", flat=True)[:limit]))
