"""One start of one step: what its context is, and the port through which the context speaks."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self
from uuid import UUID

from django.db import IntegrityError, connection

from runs import actions, record, registry, traces, tries
from runs.artifacts import quotas
from runs.attempts import deployment, folders, purses
from runs.attempts.steady import let_go, steadily
from runs.drivers import execute as steps
from runs.drivers.context import Context
from runs.drivers.ports import Decide
from runs.drivers.signal import Signal
from runs.fields import read_stored
from runs.kernel import answered
from runs.kernel.calls import Call, ready_at
from runs.kernel.decide import StartStep, commands
from runs.kernel.errors import LoopError
from runs.kernel.events import EventKind, joined
from runs.kernel.events import Path as EventPath
from runs.kernel.jsonable import JSONValue, sha256_bytes, thaw
from runs.kernel.questions import default_answers
from runs.kernel.slots import JOB
from runs.kernel.state import RunState
from runs.kernel.turns import RECORDED_ENGINE_USAGE
from runs.models import Attempt, Run
from runs.publishing import Published
from runs.record import Turn
from runs.shapes.job import Leaf, job_at
from runs.stored import RecordCallbacks
from runs.turns import folding, locking, recent, results, statements

MAX_KEY: Final = 300
_DUE: Final = """
SELECT run.id, run.workflow, run.definition_id, attempt.path, attempt.task, attempt.number,
    attempt.trace,
    EXISTS (SELECT 1 FROM runs_attempt WHERE status = 'ready' AND sent_at IS NULL)
FROM runs_attempt attempt JOIN runs_run run ON run.id = attempt.run_id
WHERE attempt.id = %s AND attempt.status = 'ready'
"""


@lru_cache
def _due_and_run() -> str:
    """The same with the run's row and news, as all of it is in one moment (PostgreSQL)."""
    run = statements.quoted(Run._meta.db_table)
    return f"""
SELECT {locking.reading()}, attempt.path, attempt.task, attempt.number, attempt.trace,
    EXISTS (SELECT 1 FROM runs_attempt WHERE status = 'ready' AND sent_at IS NULL)
FROM runs_attempt attempt JOIN {run} here ON here.id = attempt.run_id
WHERE attempt.id = %s AND attempt.status = 'ready'
"""  # noqa: S608  no values


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A start that waits for a worker."""

    pk: int
    run_id: UUID
    workflow: str
    definition: str
    path: EventPath
    task: str
    number: int
    trace: str = ""
    others_held_back: bool = False
    # Its run was read with it, for the turn that follows.
    is_seen: bool = False

    @classmethod
    def find(cls, attempt_pk: int, run_id: UUID | None = None) -> Self | None:
        """The start of this attempt; None when somebody has it, or it is over (design I3).

        Its run is read with it where somebody said which that is, and a turn can be tried on it.
        """
        if run_id is not None and tries.may_try() and not recent.is_busy(run_id):
            return cls._find_with_run(attempt_pk, run_id)
        with connection.cursor() as cursor:
            cursor.execute(_DUE, [attempt_pk])
            row = cursor.fetchone()
        if row is None:
            return None
        run_id, workflow, definition, path, task, number, trace, held_back = row
        return cls(
            pk=attempt_pk,
            run_id=run_id if isinstance(run_id, UUID) else UUID(run_id),
            workflow=workflow,
            definition=definition,
            path=tuple(read_stored(path)),
            task=task,
            number=number,
            trace=trace or "",
            others_held_back=bool(held_back),
        )

    @classmethod
    def _find_with_run(cls, attempt_pk: int, run_id: UUID) -> Self | None:
        known = folding.known_of(run_id)
        with connection.cursor() as cursor:
            cursor.execute(_due_and_run(), [known.seq, attempt_pk])
            row = cursor.fetchone()
        if row is None:
            return None
        *of_run, path, task, number, trace, held_back = row
        found = locking.found(of_run)
        run = found[0]
        # What is new was counted from a state of the run that was named.
        is_seen = run.pk == run_id
        if is_seen:
            tries.saw(found, known)
        assert run.definition_id is not None
        return cls(
            pk=attempt_pk,
            run_id=run.pk,
            workflow=run.workflow,
            definition=run.definition_id,
            path=tuple(read_stored(path)),
            task=task,
            number=number,
            trace=trace or "",
            others_held_back=bool(held_back),
            is_seen=is_seen,
        )

    @classmethod
    def of(cls, turn: Turn, command: StartStep) -> Self:
        """What a turn makes due; its attempt gets its key when it is written."""
        assert turn.run.definition_id is not None
        return cls(
            pk=0,
            run_id=turn.run.pk,
            workflow=turn.run.workflow,
            definition=turn.run.definition_id,
            path=command.path,
            task=command.task,
            number=command.number,
            trace=traces.here(),
        )

    def changed(self) -> str:
        """Why this process's code may not go on with the record (design I13, D20), or nothing."""
        made = registry.published(self.workflow)
        if made is None:
            return f"The workflow {self.workflow} is not on this worker."
        if made.identity != folding.identity_of(self.definition):
            return f"The shape of {self.workflow} changed since this run started."
        return ""


class Taken(RuntimeError):
    """Another worker has this start, or had it."""


class Start:
    """The start in this process; its fence tells its writes from those of another start."""

    def __init__(self, due: Due, made: Published) -> None:
        self.due = due
        self.made = made
        self.path = due.path
        self.fence = secrets.token_hex(16)
        self.signal = Signal()
        self.state = RunState()
        # A step may emit from several threads; each event has a number of its own.
        self._emitted = itertools.count(1)
        self._callbacks: RecordCallbacks | None = None
        # What this worker has begun in turns that ended this start; one of them was committed.
        self.following: list[Start] = []

    @classmethod
    def following_from(cls, turn: Turn) -> Self | None:
        """A start that this turn makes due, for this worker to go on with; None without one."""
        if turn.shape is None or turn.state.held:
            return None
        for command in commands(turn.shape, turn.before, turn.state):
            if isinstance(command, StartStep):
                due = Due.of(turn, command)
                made = registry.published(due.workflow)
                if made is None or due.changed():
                    return None
                start = cls(due, made)
                start.state = turn.state
                return start if start.is_due(turn.state) else None
        return None

    def known_as(self, attempt_pk: int) -> Self:
        """The same start, now that its attempt has a key."""
        self.due = replace(self.due, pk=attempt_pk)
        return self

    def find_begun(self) -> bool:
        """Whether this start is in the record after all, and its attempt's key."""
        begun = Attempt.objects.filter(
            run_id=self.due.run_id, fence=self.fence, status=Attempt.Status.RUNNING
        )
        found = begun.values_list("pk", flat=True).first()
        return found is not None and self.known_as(found) is self

    def which(self) -> dict[str, Any]:
        """What tells the attempt of this start from all others."""
        return {
            "run_id": self.due.run_id,
            "path": statements.path_text(self.path),
            "task": self.due.task,
            "number": self.due.number,
        }

    @property
    def is_check(self) -> bool:
        """Whether it does no step's work: a `when`, or a check of a loop."""
        return self.due.task != JOB

    @property
    def leaf(self) -> Leaf:
        found = job_at(self.made.job, self.path, self.state.loops)
        assert isinstance(found, Leaf)
        return found

    @property
    def label(self) -> str:
        return self.due.task if self.is_check else self.leaf.shape.label

    def inherited_ms(self) -> int | None:
        """The time that what is around this step gives it."""
        shape = self.made.job.shape
        return steps.position_of(shape, self.state, self.path, self.due.task).timeout_ms

    def key(self, what: str) -> str:
        """The key under which the record takes an effect of this start once."""
        key = f"step:{what}:{self.due.task}:{self.due.number}:{joined(self.path)}"
        return key if len(key) <= MAX_KEY else f"step:{what}:{sha256_bytes(key.encode())}"

    def is_due(self, state: RunState) -> bool:
        task = self.due.task
        slot = state.checks.get((task, self.path)) if self.is_check else state.slots.get(self.path)
        return (
            slot is not None
            and slot.status == "queued"
            and slot.number == self.due.number
            and not state.cancelled
            and state.ended is None
        )

    def take(self, turn: Turn, **changes: Any) -> None:
        """Change the attempt in this turn if it waits for a worker; the row count decides."""
        ready = Attempt.Status.READY
        turn.writes.update(Attempt, changes, lost=Taken(), pk=self.due.pk, status=ready)

    def withdraw(self, now: datetime) -> None:
        """Nobody needs this start any more."""
        changes = {"status": Attempt.Status.WITHDRAWN, "ended_at": now}
        statements.update(Attempt, changes, pk=self.due.pk, status=Attempt.Status.READY)

    def finish(self, turn: Turn) -> None:
        """End the attempt in this turn if it still runs under this start's fence."""
        turn.writes.update(
            Attempt,
            {"status": Attempt.Status.DONE, "ended_at": turn.now},
            lost=Taken(),
            pk=self.due.pk,
            fence=self.fence,
            status=Attempt.Status.RUNNING,
        )

    def has(self, status: str) -> bool:
        """Whether the attempt has this status and this start's fence."""
        return Attempt.objects.filter(pk=self.due.pk, fence=self.fence, status=status).exists()

    def context(self) -> Context:
        """What the step's code gets to see, as the record was when it started."""
        shape, state = self.made.job.shape, self.state
        position = steps.position_of(shape, state, self.path, self.due.task)
        shared = thaw(state.shared)
        if state.answers:
            shared[RECORDED_ENGINE_USAGE] = answered.told(state.answers)
        return Context(
            run_id=str(self.due.run_id),
            path=self.path,
            params=self.state.params,
            state=shared,
            workspace=folders.workspace_of(self.due.run_id, copied_from=state.workspace_of),
            port=self,
            signal=self.signal,
            idempotency_key=steps.idempotency_key(str(self.due.run_id), state, self.path),
            on_callback="wait",
            default_answers=default_answers(state.expired),
            overridden=frozenset(state.overridden),
            approved=ready_at(state, self.path),
            actions=state.actions,
            dry_run=state.dry_run,
            **position.facts(),
            **deployment.engines_of(self.made),
        )

    # --- the port --------------------------------------------------------------------------------

    @property
    def callbacks(self) -> RecordCallbacks:
        """The run's questions, for as long as this start has its lease."""
        if self._callbacks is None:
            self._callbacks = RecordCallbacks(
                self.due.run_id,
                path=self.path,
                actor=f"step:{joined(self.path)}"[:200],
                guard=self.need_lease,
            )
        return self._callbacks

    def need_lease(self) -> None:
        """Raise LoopError ABORTED when another worker has this start by now."""
        if not self.has(Attempt.Status.RUNNING):
            raise LoopError("ABORTED", "another worker has this step by now.", phase="body")

    def emit(
        self,
        kind: str,
        path: EventPath,
        fields: Mapping[str, JSONValue],
        admit: Callable[[], None] = lambda: None,
    ) -> None:
        """Record an event of the step; `admit` may refuse it under the run's lock."""
        frozen = results.emitted(kind, fields)
        key = f"emit:{self.fence}:{next(self._emitted)}"

        def append() -> None:
            with record.turn(self.due.run_id, surface="worker") as turn:
                if self.has(Attempt.Status.RUNNING):
                    admit()
                    turn.append(kind, path, frozen, key=key)

        try:
            steadily(append)
        except IntegrityError:
            # An earlier try was committed, and its answer lost.
            if not record.has_key(self.due.run_id, key):
                raise

    def stream(self, kind: str, path: EventPath, fields: Mapping[str, JSONValue]) -> None:
        """Nobody listens to a worker; what counts is in the record."""

    def attach(
        self, name: str, content: bytes | Path, media_type: str, path: EventPath
    ) -> dict[str, JSONValue]:
        digest, size = quotas.keep(self.due.run_id, path, name, content)
        artifact: dict[str, JSONValue] = {
            "name": name[:300],
            "digest": digest,
            "byteLength": size,
            "mediaType": media_type[:255],
        }

        def admit() -> None:
            quotas.need_room(self.due.run_id, path, name, digest, size)

        self.emit(EventKind.ARTIFACT, path, artifact, admit=admit)
        quotas.in_all.add(size)
        return artifact

    def engine_call(self, at_most: int | None) -> AbstractContextManager[None]:
        """Admit a call of an engine as far as the workflow's budget goes."""
        budget = self.made.budget
        return nullcontext() if budget is None else purses.call(self, budget, at_most)

    def act(self, decide: Decide, *, permission: str = "", call: Call | None = None) -> None:
        """Record what follows; only the start that has its lease may (design I2)."""

        def once() -> None:
            with record.turn(self.due.run_id, surface="worker") as turn:
                self.need_lease()
                around = actions.surroundings(turn, call, permission)
                for event in decide(turn.state, around, turn.now_ms):
                    turn.append(event.kind, event.path, event.fields)

        steadily(once)

    def is_held(self) -> bool:
        return self.has(Attempt.Status.RUNNING)

    def leave_thread(self) -> None:
        let_go()
