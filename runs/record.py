"""The one door through which events are written.

A turn locks its run, folds what is recorded, lets its caller append facts, decides what follows
from them, and commits events and rows together. After the commit it hands out work and rings the
bell; both may be lost without losing a fact.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from structlog.contextvars import bind_contextvars, reset_contextvars

from runs import backlog, dispatch, live, traces
from runs.errors import RunArchived
from runs.kernel import chain, clocks, deadlines
from runs.kernel.decide import Command, StartStep, commands, decide
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import Shape
from runs.kernel.moments import milliseconds, moment
from runs.kernel.state import RunState, reduce
from runs.kernel.worktime import Calendar
from runs.models import Artifact, Attempt, Run, Step
from runs.models import Event as EventRow
from runs.turns import admission, folding, headline, projection, recent, statements, whole
from runs.turns.batch import Batch
from runs.turns.clock import Clock, moment_of
from runs.turns.clock import database_now as database_now  # noqa: PLC0414  others ask here
from runs.turns.fairness import writer
from runs.turns.locking import locked
from runs.turns.seals import head_of_before, seal_of

Projector = Callable[["Turn"], None]
_projectors: list[Projector] = []


def register_projector(projector: Projector) -> None:
    """Call `projector(turn)` inside every turn, after its events are known."""
    if projector not in _projectors:
        _projectors.append(projector)


Calendars = Callable[[Mapping[str, Any]], tuple[str, Calendar] | None]
_calendars: list[Calendars] = []


def register_calendars(find: Calendars) -> None:
    """Ask `find(routing)` by which team's calendar a question's hours are counted."""
    if find not in _calendars:
        _calendars.append(find)


class RunUnknown(LookupError):
    """No run has this id."""

    code = "not-found"


class Moved(RuntimeError):
    """A turn that was tried without its run's lock has to be made under it."""


class Turn:
    """One transaction on one run: read `state`, `append` facts, and leave."""

    def __init__(
        self,
        run: Run,
        now: datetime,
        actor: str,
        surface: str,
        *,
        before: RunState,
        first: bool = False,
        clock: Clock | None = None,
        locked: bool = True,
    ) -> None:
        self.run = run
        self._first = first
        # Without the lock all that is written goes out at once, in the end, if nobody was faster.
        self.is_locked = locked
        self._clock = clock or Clock(now)
        self._afterwards: list[Callable[[], None]] = []
        self._base = run.last_seq
        # Events keep milliseconds; the fold must see the same time now and on a later reading.
        self.now_ms = milliseconds(now)
        self.now = moment(self.now_ms)
        self.actor = actor
        self.surface = surface
        self.shape: Shape | None = (
            None if run.definition_id is None else folding.shape_of(run.definition_id)
        )
        self.before = self.state = before
        self._woke_at = run.wake_at
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self.sent: list[int] = []
        self.held_back = False
        self.inbox_changed = False
        # Rows that this turn has read under its lock, for projectors to go on with.
        self.seen: dict[str, Any] = {}
        # Sent together at the end; a writer that lost takes the whole turn back.
        self.writes = Batch()

    @property
    def next_seq(self) -> int:
        return self._base + len(self.events) + 1

    @property
    def last_seq(self) -> int:
        return self.next_seq - 1

    def append(
        self,
        kind: str,
        path: Path = (),
        fields: Mapping[str, Any] | None = None,
        *,
        key: str = "",
        actor: str | None = None,
    ) -> Event:
        """Record a fact of this turn and fold it."""
        fields = fields or {}
        if kind == EventKind.ROUTED and clocks.asks_for_calendar(fields):
            fields = self._in_working_time(fields)
        event = Event(
            kind,
            path,
            fields,
            seq=self.next_seq,
            ts=self.now_ms,
            actor=self.actor if actor is None else actor,
            surface=self.surface,
            key=key,
        )
        self.state = reduce(self.state, event)
        self.events.append(event)
        return event

    def _in_working_time(self, routing: Mapping[str, Any]) -> Mapping[str, Any]:
        """The team's calendar of this moment, as a fact that no later change of it moves."""
        for find in _calendars:
            if (found := find(routing)) is not None:
                return clocks.in_working_time(routing, self.now_ms, *found)
        return routing

    def afterwards(self, follow: Callable[[], None]) -> None:
        """Call this after the commit; it may be lost, and raises nothing that matters."""
        self._afterwards.append(follow)

    def need_lock(self) -> None:
        """Raise Moved in a turn that is only tried: what follows is not written by the turn."""
        if not self.is_locked:
            raise Moved

    def keep_time(self) -> None:
        """Record what time alone has done to the run's questions before anybody acts on them."""
        while passed := deadlines.overdue(self.state, self.now_ms):
            for event in passed:
                self.append(event.kind, event.path, event.fields, actor="system")

    def settle(self) -> None:
        """Append everything that follows, until nothing does."""
        if self.shape is None:
            return
        while True:
            follows = decide(self.shape, self.state, self.now_ms)
            if admission.enter(self, follows=bool(follows)):
                continue
            if not follows:
                return
            for event in follows:
                self.append(event.kind, event.path, event.fields, actor="system")

    def close(self) -> None:
        """Write events and rows, and arrange what happens after the commit."""
        self.prepare()
        self.send()

    def prepare(self) -> None:
        """Decide what follows, and make the rows of everything."""
        self.settle()
        if self.events or self._first:
            self._write_rows()
        elif not self.is_locked:
            # Whether nothing is to be done only the lock can tell.
            raise Moved

    def send(self) -> None:
        """Write it, and arrange what happens after the commit."""
        if self.is_locked:
            self.writes.send()
        else:
            self.writes.send_alone()
        if not self.events:
            return
        # Methods, not partials: Django names the callback in its log when one fails.
        for follow in (self._remember, self._hand_out, self._ring, *self._afterwards):
            transaction.on_commit(follow, robust=True)

    def _write_rows(self) -> None:
        in_line = self.run.admission in admission.IN_LINE
        headline.copy(self.run, self.shape, self.state, self.events)
        if in_line and self.run.admission == admission.OUTSIDE:
            admission.leave(self)
        hashes = self._seal()
        if self._first:
            self.writes.insert(Run, [statements.columns_of(self.run)])
        else:
            changed = headline.columns(self.run, outcome=self.before.ended is not self.state.ended)
            changed |= {"head": self.run.head, "seal": self.run.seal}
            if self.is_locked:
                self.writes.update(Run, changed, pk=self.run.pk)
            else:
                same = {"pk": self.run.pk, "last_seq": self._base}
                self.writes.update_first(Run, changed, lost=Moved(), now="changed_at", **same)
        rows = zip(self.events, hashes, strict=True)
        self.writes.insert(EventRow, [self._row(event, own) for event, own in rows])
        if self.shape is not None:
            self.commands = commands(self.shape, self.before, self.state)
            self._hand_over()
            self._write_steps(self.shape)
        self.writes.insert(Artifact, list(projection.artifact_rows(self.run.pk, self.events)))
        for projector in _projectors:
            projector(self)

    def _seal(self) -> list[str]:
        """Go on with the chain of the record: the hash of each event of this turn."""
        head = self.run.head
        if not head and self._base:
            head = head_of_before(self.run.pk, self._base)
        hashes = list(chain.hashes(self.events, head))
        if hashes:
            self.run.head = hashes[-1]
            self.run.seal = seal_of(self.run.pk, self.last_seq, self.run.head)
        return hashes

    def _write_steps(self, shape: Shape) -> None:
        places = folding.places_of(self.run.definition_id)
        rows = projection.changed_rows(
            self.run.pk, shape, places, self.before, self.state, self.events
        )
        if self._first:
            self.writes.insert(Step, projection.all_rows(self.run.pk, places, rows))
        else:
            self.writes.insert(Step, rows, unique=projection.SAME_STEP, update=projection.CHANGING)

    def _row(self, event: Event, own_hash: str) -> dict[str, Any]:
        return {
            "run_id": self.run.pk,
            "seq": event.seq,
            "kind": event.kind,
            "path": statements.path_text(event.path),
            "actor": event.actor,
            "surface": event.surface,
            "at": self.now,
            "key": event.key,
            "payload": event.fields,
            "hash": own_hash,
        }

    def _remember(self) -> None:
        folding.remember(self.run.pk, self.state)
        recent.put(recent.Seen(self.run, self.state, self._clock))

    def _hand_out(self) -> None:
        if self.sent:
            dispatch.send(self.sent, self.run.pk)
            backlog.sent(len(self.sent))
        if self.held_back:
            backlog.hand_out()
        if self.run.wake_at is not None and self.run.wake_at != self._woke_at:
            dispatch.wake(self.run.pk, self.run.wake_at - self.now)

    def _ring(self) -> None:
        live.ring(self.run.pk, self.last_seq, inbox=self.inbox_changed)

    def _hand_over(self) -> None:
        """One row per start that is now due, none for a start that was taken back."""
        here = traces.here()
        traced = {"trace": here} if here else {}
        rows = []
        for command in self.commands:
            which: dict[str, Any] = {
                "run_id": self.run.pk,
                "path": statements.path_text(command.path),
                "task": command.task,
                "number": command.number,
            }
            if isinstance(command, StartStep):
                rows.append({**which, "ready_at": self.now, "sent_at": self.now, **traced})
            else:
                self.writes.update(
                    Attempt,
                    {"status": Attempt.Status.WITHDRAWN, "ended_at": self.now},
                    **which,
                    status=Attempt.Status.READY,
                )
        if self.before.stands_in_line and rows:
            rows = self._unknown(rows)
        fits = backlog.room(len(rows))
        self.held_back = len(rows) > fits
        self.writes.insert(Attempt, rows[:fits], keys=self.sent)
        self.writes.insert(Attempt, [{**row, "sent_at": None} for row in rows[fits:]])

    def _unknown(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The starts that have no row from before the run stood in line; those are sent again."""
        ready = Attempt.objects.filter(run_id=self.run.pk, status=Attempt.Status.READY)
        known = {
            (statements.path_text(tuple(row.path)), row.task, row.number): row.pk for row in ready
        }
        starts = [(row["path"], row["task"], row["number"]) for row in rows]
        self.sent += [known[start] for start in starts if start in known]
        return [row for row, start in zip(rows, starts, strict=True) if start not in known]


@contextlib.contextmanager
def told(run_id: UUID) -> Iterator[traces.Span]:
    """A span of the turn, where there are any, and the run in every line of the log."""
    before = bind_contextvars(run_id=str(run_id))
    try:
        with traces.span("obversa.turn", run_id=str(run_id)) as span:
            yield span
    finally:
        reset_contextvars(**before)


@contextlib.contextmanager
def turn(run_id: UUID, *, actor: str = "system", surface: str = "") -> Iterator[Turn]:
    """Lock the run and open its transaction; raises RunUnknown. No I/O inside, ever."""
    outermost = not connection.in_atomic_block
    with told(run_id) as span, writer(), transaction.atomic():
        known = folding.known_of(run_id)
        found = locked(run_id, known.seq)
        if found is None:
            raise RunUnknown(f"There is no run {run_id}.")
        run, db_now, news = found
        if run.archived_at is not None:
            raise RunArchived.of(run)
        # Never earlier than the turn before: the clock may be read before the lock is granted.
        now = max(moment_of(db_now), run.changed_at)
        # What was there before the outermost transaction began is committed.
        before = folding.state_at(run_id, run.last_seq, committed=outermost, known=known, news=news)
        opened = Turn(run, now, actor, surface, before=before)
        opened.keep_time()
        yield opened
        opened.close()
        span.note(workflow=run.workflow, events=len(opened.events))


@contextlib.contextmanager
def first_turn(run: Run, *, actor: str, surface: str) -> Iterator[Turn]:
    """Create the run and open its first turn in one transaction."""
    with told(run.pk) as span, writer(), transaction.atomic():
        now = database_now()
        opened = Turn(run, now, actor, surface, before=RunState(), first=True)
        run.created_at = run.changed_at = opened.now
        yield opened
        opened.close()
        run._state.adding = False
        span.note(workflow=run.workflow, events=len(opened.events))


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A transaction that is no turn, for whole records that come or go."""
    with writer(), transaction.atomic():
        yield


@contextlib.contextmanager
def restored(run: Run, events: Iterable[Event], *, from_archive: bool = False) -> Iterator[None]:
    """Write a record that was made elsewhere as it is; its rows are made inside the block.

    One `from_archive` has its row here, with its head and its seal.
    """
    kept = list(events)
    hashes = list(chain.hashes(kept))
    if not from_archive:
        run.head = hashes[-1] if hashes else chain.START
        run.seal = seal_of(run.pk, len(kept), run.head) if hashes else ""
    with alone():
        whole.begin(run) if from_archive else run.save(force_insert=True)
        whole.insert(run, kept, hashes)
        last_seq = run.last_seq
        transaction.on_commit(lambda: live.ring(run.pk, last_seq, inbox=True), robust=True)
        yield


def has_key(run_id: UUID, key: str) -> bool:
    """Whether the effect with this key is recorded."""
    return EventRow.objects.filter(run_id=run_id, key=key).exists()
