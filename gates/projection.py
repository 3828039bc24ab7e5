"""Requests as a fold of the record: one event at a time, the same now and on a later rebuild."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from gates import columns
from gates.models import Request, Response
from runs.kernel import callbacks
from runs.kernel.callbacks import CallbackState, CallbackStatus
from runs.kernel.clocks import REJECT, expired_text, iso
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind
from runs.kernel.jsonable import thaw
from runs.kernel.moments import moment
from runs.kernel.state import RunState
from runs.kernel.tallies import rule_of
from runs.models import Run
from runs.people.audiences import AudienceRefused, audience_for

# An audience that cannot be read must not become everyone: those who repair things get it.
_REPAIRERS: Final = {"permissions": ["gates.change_request"]}
RUN_KINDS: Final = frozenset({EventKind.RUN_CANCEL, EventKind.RUN_END, EventKind.RUN_START})
# What time does to a question that is seen in its row.
TIME_KINDS: Final = frozenset({EventKind.EXPIRED, EventKind.ESCALATED, EventKind.OVERDUE})
# One of several answers, and that somebody is going to answer who was not asked.
ANSWER_KINDS: Final = frozenset({EventKind.RESPONDED, EventKind.DEPUTIZED, EventKind.OVERRIDDEN})
ROW_KINDS: Final = frozenset(
    {*CALLBACK_KINDS, EventKind.ROUTED, EventKind.WITHDRAWN, *TIME_KINDS, *ANSWER_KINDS}
)
_ESCALATED: Final = ("audience", "onExpiry", "expiresAt", "escalatedAt", "escalations")


def is_closed(state: RunState) -> bool:
    """Whether a cancellation keeps the run's questions out of every inbox (design D5)."""
    aborted = state.ended is not None and state.ended.status == "aborted"
    return state.cancelled or aborted


def about(event: Event) -> str:
    """The column id of the request that the event happened to."""
    request = event.fields.get("request")
    given = request if isinstance(request, Mapping) else event.fields
    return columns.request_id(given.get("requestId", ""))


class Projection:
    """The rows of one run while events are applied to them."""

    def __init__(
        self, run: Run, before: CallbackState, *, closed: bool, rows: Iterable[Request]
    ) -> None:
        self.run = run
        self.closed = closed
        self.rows = {row.request_id: row for row in rows}
        self.responses: list[Response] = []
        # Asked anew, a question has no answers: those of before are in its record alone.
        self.emptied: set[str] = set()
        self._settled: set[str] = set()
        self._deputies: dict[str, str] = {}
        self._held = before
        self._later: list[dict[str, Any]] = []

    def apply(self, event: Event) -> None:
        """Bring the rows past one event."""
        at = moment(event.ts)
        if event.kind in RUN_KINDS:
            self._run(event, at)
        elif event.kind in ANSWER_KINDS:
            self._answer_told(event, at)
        elif event.kind in ROW_KINDS:
            self._row(event, at)
        if event.kind in CALLBACK_KINDS:
            self._later.append(event.callback_wire())

    def _run(self, event: Event, at: datetime) -> None:
        if event.kind == EventKind.RUN_START:
            if self.closed:
                self.closed = False
                self._reopen(at)
        elif event.kind == EventKind.RUN_CANCEL or event.fields["outcome"]["status"] == "aborted":
            self.closed = True
            for row in self.rows.values():
                if row.is_open:
                    _close(row, Request.Status.CANCELLED, at)

    def _reopen(self, at: datetime) -> None:
        """A resumed run gives its questions back as the record has them."""
        self._held = callbacks.fold_all(self._held, self._later)
        self._later.clear()
        for request_id, held in self._held.requests.items():
            row = self.rows.get(columns.request_id(request_id))
            if row is None or row.status != Request.Status.CANCELLED or row.closed_reason:
                continue
            row.changed_at = at
            row.status = Request.Status.PENDING
            if held.status is CallbackStatus.CLAIMED:
                row.status = Request.Status.CLAIMED
                row.holder = columns.text(held.router_id, 200)
                row.claim_seq = int(str(held.claim_token).rpartition("-")[2])

    def _row(self, event: Event, at: datetime) -> None:
        row = self.rows.get(about(event))
        if event.kind == EventKind.REQUESTED:
            self._requested(row, event, at)
            return
        if row is None or event.kind == EventKind.REJECTED:
            return
        if event.kind in TIME_KINDS:
            self._time_passed(row, event, at)
            return
        match event.kind:
            case EventKind.ROUTED:
                self._routed(row, event, at)
            case EventKind.CLAIMED:
                row.status = Request.Status.CLAIMED
                row.holder = columns.text(event.fields["routerId"], 200)
                row.claim_seq = event.seq
                row.claimed_at = row.changed_at = at
            case EventKind.RELEASED:
                _close(row, Request.Status.CANCELLED if self.closed else Request.Status.PENDING, at)
                row.claimed_at = None
            case EventKind.SUBMITTED:
                self._submitted(row, event, at)
            case EventKind.SUPERSEDED:
                _close(row, Request.Status.SUPERSEDED, at)
                row.superseded_by = columns.request_id(event.fields["supersededBy"])
            case EventKind.WITHDRAWN:
                # Records of before had no kind of their own for the end of the time.
                expired = event.fields.get("expired") is True
                _close(row, Request.Status.EXPIRED if expired else Request.Status.CANCELLED, at)
                row.superseded_by = ""
                row.how = Request.How.TIMED_OUT if expired else ""
                row.closed_reason = columns.text(event.fields.get("reason") or "withdrawn")

    def _time_passed(self, row: Request, event: Event, at: datetime) -> None:
        row.changed_at = at
        if event.kind == EventKind.EXPIRED:
            _close(row, Request.Status.EXPIRED, at)
            row.superseded_by = ""
            row.how = Request.How.TIMED_OUT
            row.closed_reason = expired_text(event.fields)
        elif event.kind == EventKind.ESCALATED:
            self._escalated(row, event)
        else:
            # It stays open, and nothing more happens to it by itself.
            row.due_at = row.due_at or row.expires_at
            row.expires_at = None
            row.due_order = _order(row)

    def _requested(self, row: Request | None, event: Event, at: datetime) -> None:
        if row is None:
            wire = thaw(event.fields["request"])
            row = Request(
                run=self.run,
                request_id=columns.request_id(wire["requestId"]),
                gate_id=columns.gate_id(wire["gateId"]),
                gate_version=wire["gateVersion"],
                digest=wire["digest"],
                decision_text=columns.text(wire["decisionText"]),
                response_schema=wire["responseSchema"],
                input=wire["input"],
                presentation=wire["presentation"],
                asked_seq=event.seq,
                created_at=at,
            )
            self.rows[row.request_id] = row
        elif row.needed > 1:
            self.emptied.add(row.request_id)
            self.responses = [kept for kept in self.responses if kept.request is not row]
        row.needed, row.how = 1, ""
        row.status = Request.Status.CANCELLED if self.closed else Request.Status.PENDING
        row.step_path = list(event.path)
        row.asked_by = self._asker(event)
        row.audience_id = self.run.audience_id
        row.routing, row.kind, row.priority, row.on_answer = {}, Request.Kind.GATE, 0, "resume"
        row.due_at = row.expires_at = row.claimed_at = None
        row.due_order = columns.END_OF_TIME
        row.superseded_by = row.closed_reason = ""
        row.changed_at = at

    def _asker(self, event: Event) -> str:
        """An outside program asks for itself, a step for whoever started its run."""
        if self.run.kind == Run.Kind.EXTERNAL:
            return event.actor
        return self.run.started_by

    def _routed(self, row: Request, event: Event, at: datetime) -> None:
        kept_for_its_run = row.status == Request.Status.CANCELLED and not row.closed_reason
        if not (row.is_open or kept_for_its_run):
            return
        routing = thaw(event.fields)
        if "escalatedAt" in row.routing:
            routing |= {name: row.routing[name] for name in _ESCALATED if name in row.routing}
        row.routing = routing
        row.step_path = list(event.path)
        row.kind = columns.kind(routing)
        row.priority = columns.priority(routing.get("priority"))
        row.on_answer = "hold" if routing.get("onAnswer") == "hold" else "resume"
        row.audience_id = self._audience(routing)
        row.needed = max(row.needed, rule_of(routing)[0])
        # The clock starts when the question is posted; putting it again does not wind it back.
        row.due_at = row.due_at or columns.time_of(routing.get("dueAt"))
        row.expires_at = row.expires_at or columns.time_of(routing.get("expiresAt"))
        row.due_order = _order(row)
        row.changed_at = at

    def _escalated(self, row: Request, event: Event) -> None:
        """The question goes to the next audience, with a new end; after the last there is a no."""
        told = thaw(event.fields)
        row.routing = {
            **row.routing,
            "audience": told["audience"],
            "expiresAt": told["expiresAt"],
            "escalatedAt": told["expiredAt"],
            "escalations": told.get("level", 1),
            "onExpiry": told.get("onExpiry", REJECT),
        }
        row.audience_id = self._audience(row.routing)
        row.expires_at = columns.time_of(told["expiresAt"])
        row.due_order = _order(row)

    def _audience(self, routing: Mapping[str, Any]) -> int:
        if "audience" not in routing:
            return self.run.audience_id
        try:
            return audience_for(routing["audience"]).pk
        except (AudienceRefused, AttributeError):
            return audience_for(_REPAIRERS).pk

    def _answer_told(self, event: Event, at: datetime) -> None:
        row = self.rows.get(about(event))
        if row is None:
            return
        row.changed_at = at
        if event.kind == EventKind.OVERRIDDEN:
            row.how = Request.How.OVERRIDDEN
            told = {"by": event.actor, "reason": event.fields["reason"], "at": iso(event.ts)}
            row.routing = {**row.routing, "override": told}
            return
        deputy_for = columns.text(event.fields.get("deputyFor", ""), 200)
        if event.kind == EventKind.DEPUTIZED:
            self._deputies[row.request_id] = deputy_for
            return
        if event.fields.get("settles") is True:
            self._settled.add(row.request_id)
        self._response(row, event, event.fields.get("person"), at, deputy_for=deputy_for)

    def _submitted(self, row: Request, event: Event, at: datetime) -> None:
        _close(row, Request.Status.ANSWERED, at)
        row.how = row.how or Request.How.ANSWERED
        # Code that answers inside a step has no actor of its own, but it has a router.
        by = event.fields["routerId"] if event.actor == "system" else event.actor
        row.answered_by = columns.text(by, 200)
        row.answered_at = at
        if row.request_id not in self._settled:
            overrides = row.how == Request.How.OVERRIDDEN
            deputy_for = self._deputies.get(row.request_id, "")
            self._response(row, event, by, at, overrides=overrides, deputy_for=deputy_for)

    def _response(self, row: Request, event: Event, by: object, at: datetime, **more: Any) -> None:
        answer = Response(
            request=row,
            actor=columns.text(by or event.actor, 200),
            response=thaw(event.fields["response"]),
            at=at,
            surface=event.surface,
            seq=event.seq,
            **more,
        )
        self.responses.append(answer)


def _order(row: Request) -> datetime:
    """Where the row stands among others: by when it is due, or else by its end (I125)."""
    return row.due_at or row.expires_at or columns.END_OF_TIME


def _close(row: Request, status: str, at: datetime) -> None:
    """Give the row another status; only a claimed one has a holder."""
    row.status = status
    row.holder = ""
    row.claim_seq = None
    row.changed_at = at
