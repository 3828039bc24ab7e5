"""Execute one attempt: claim it, do the author's work outside any transaction, record the end."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from runs import artifacts, record, registry
from runs.drivers import execute as steps
from runs.drivers.context import Context, Workspace
from runs.drivers.signal import Signal
from runs.kernel.decide import place_at
from runs.kernel.errors import LoopError
from runs.kernel.events import EventKind
from runs.kernel.events import Path as EventPath
from runs.kernel.jsonable import JSONValue, JsonValueError, canonical_json, snapshot, thaw
from runs.kernel.outcomes import failing
from runs.kernel.state import RunState
from runs.leases import Held, lease, leases
from runs.models import Attempt, Event
from runs.publishing import Published
from runs.record import Turn
from runs.shapes.job import Leaf, job_at, when_at
from runs.stored import RecordCallbacks

logger = logging.getLogger(__name__)


def worker_name(role: str = "worker") -> str:
    """Who holds a lease: role, host and process."""
    return f"{_role or role}@{socket.gethostname()}/{os.getpid()}"


_role = ""


def work_as(role: str) -> str:
    """Name this process's worker; returns what all workers of that role on this host share."""
    global _role
    _role = role
    return worker_name().rsplit("/", 1)[0] + "/"


def execute(attempt_pk: int) -> None:
    """Do this attempt once. A duplicate, late or withdrawn message does nothing (design I3)."""
    attempt = (
        Attempt.objects.select_related("run", "run__definition")
        .filter(pk=attempt_pk, status=Attempt.Status.READY)
        .first()
    )
    if attempt is None:
        return
    offer = registry.published(attempt.run.workflow)
    changed = _changed(attempt, offer)
    if changed:
        _hold(attempt, changed)
        return
    assert offer is not None
    start = Start(attempt, offer)
    if not start.claim():
        return
    try:
        start.work()
    finally:
        leases.drop(attempt.pk)


def _changed(attempt: Attempt, offer: Published | None) -> str:
    """Why this code may not go on with that record (design I13, D20); empty when it may."""
    if offer is None:
        return f"The workflow {attempt.run.workflow} is not on this worker."
    definition = attempt.run.definition
    assert definition is not None
    if offer.identity != definition.identity:
        return f"The shape of {attempt.run.workflow} changed since this run started."
    return ""


def _hold(attempt: Attempt, reason: str) -> None:
    with record.turn(attempt.run_id, surface="worker") as turn:
        if not turn.state.held and turn.state.ended is None:
            turn.append(EventKind.RUN_HELD, (), {"reason": reason, "code": "definition-changed"})


class Start:
    """One start of one step in this process; it is also the port its context speaks to."""

    def __init__(self, attempt: Attempt, offer: Published) -> None:
        self.attempt = attempt
        self.offer = offer
        self.path: EventPath = tuple(attempt.path)
        self.fence = secrets.token_hex(16)
        self.signal = Signal()
        self.state = RunState()
        self._callbacks: RecordCallbacks | None = None

    # --- the lease -------------------------------------------------------------------------------

    def claim(self) -> bool:
        """Take the attempt and record its start before its job begins (design I1, I2)."""
        attempt = self.attempt
        with record.turn(attempt.run_id, surface="worker") as turn:
            if turn.state.held:
                return False
            if not self._is_due(turn.state):
                self._ready().update(status=Attempt.Status.WITHDRAWN, ended_at=turn.now)
                return False
            won = self._ready().update(
                status=Attempt.Status.RUNNING,
                fence=self.fence,
                worker=worker_name(),
                lease_until=turn.now + lease(),
                claimed_at=turn.now,
            )
            if not won:
                return False
            self._note_changed_body(turn)
            turn.append(EventKind.JOB_START, self.path, self._start_fields(), key=self._key("start"))
            self.state = turn.state
        leases.hold(attempt.pk, Held(attempt.run_id, self.fence, self.signal))
        return True

    def _ready(self) -> Any:
        return Attempt.objects.filter(pk=self.attempt.pk, status=Attempt.Status.READY)

    def _is_due(self, state: RunState) -> bool:
        places = state.checks if self.attempt.task == "when" else state.slots
        slot = places.get(self.path)
        return (
            slot is not None
            and slot.status == "queued"
            and slot.number == self.attempt.number
            and not state.cancelled
            and state.ended is None
        )

    def _start_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"label": self._label(), "number": self.attempt.number}
        if self.attempt.task == "when":
            fields["task"] = "when"
        return fields

    def _label(self) -> str:
        if self.attempt.task == "when":
            return "when"
        return self._leaf().shape.label

    def _leaf(self) -> Leaf:
        leaf = job_at(self.offer.job, self.path)
        assert isinstance(leaf, Leaf)
        return leaf

    def _key(self, what: str) -> str:
        digest = canonical_json([list(self.path), self.attempt.task, self.attempt.number])
        return f"step:{what}:{digest}"[:300]

    def _note_changed_body(self, turn: Turn) -> None:
        """Only bodies changed: the run goes on, and its record says so once (design D20)."""
        if self.offer.digest == turn.run.definition_id:
            return
        key = f"code:{self.offer.digest}"
        if not Event.objects.filter(run_id=turn.run.pk, key=key).exists():
            text = "The code of this workflow changed since the run started; its shape did not."
            turn.append(EventKind.LOG, (), {"level": "warn", "message": text}, key=key)

    # --- the work --------------------------------------------------------------------------------

    def work(self) -> None:
        began = time.monotonic()
        before = thaw(snapshot(self.state.shared))
        ctx = self._context(dict(before))
        if self.attempt.task == "when":
            when = when_at(self.offer.job, self.path)
            assert when is not None
            result = steps.run_check(when, ctx)
            with self._end() as turn:
                if turn is None:
                    return
                if isinstance(result, LoopError):
                    for kind, path, fields in steps.check_failed_events(
                        self.path, turn.state, result
                    ):
                        turn.append(kind, path, fields)
                else:
                    fields = {"label": "when", "iteration": 0, "result": result.to_json()}
                    turn.append(EventKind.CONDITION, self.path, fields, key=self._key("end"))
            return
        leaf = self._leaf()
        ended = steps.run_leaf(leaf, ctx)
        changes, ended = _state_changes(before, ctx.state, ended)
        with self._end() as turn:
            if turn is None:
                return
            if ended.error is not None:
                turn.append(EventKind.ERROR, self.path, steps.error_fields(ended.error))
            if ended.asking is not None:
                place = place_at(self.offer.job.shape, turn.state, self.path)
                for event in steps.bind(turn.state, place, ended.asking, turn.now_ms):
                    turn.append(event.kind, event.path, event.fields)
                return
            duration = round((time.monotonic() - began) * 1000)
            fields = steps.end_fields(leaf.shape, ended, duration) | changes
            turn.append(EventKind.JOB_END, self.path, fields, key=self._key("end"))

    def _end(self) -> Any:
        return _EndTurn(self)

    def _context(self, shared: dict[str, Any]) -> Context:
        run = self.attempt.run
        position = steps.position_of(self.offer.job.shape, self.state, self.path)
        folder = Path(settings.OBVERSA_HOME) / "workspaces" / str(run.pk)
        folder.mkdir(parents=True, exist_ok=True)
        attempt = position.graph.attempt if position.graph is not None else 1
        scope = self.state.scopes.get(self.path[:-1])
        invocation = scope.invocation if scope is not None else 1
        return Context(
            run_id=str(run.pk),
            path=self.path,
            params=self.state.params,
            state=shared,
            workspace=Workspace(dir=folder.resolve()),
            port=self,
            signal=self.signal,
            idempotency_key=f"{run.pk}/{'/'.join(self.path)}/{invocation}.{attempt}",
            needs=position.needs,
            graph=position.graph,
            last_review=position.last_review,
            depth=len(self.path) // 2,
            on_callback="wait",
            timeout_ms=position.timeout_ms,
            timeout_grace_ms=position.timeout_grace_ms,
        )

    # --- the port --------------------------------------------------------------------------------

    @property
    def callbacks(self) -> RecordCallbacks:
        if self._callbacks is None:
            actor = f"step:{'/'.join(self.path)}"
            self._callbacks = RecordCallbacks(self.attempt.run_id, path=self.path, actor=actor)
        return self._callbacks

    def emit(self, kind: str, path: EventPath, fields: dict[str, JSONValue]) -> None:
        frozen = snapshot(fields)
        assert isinstance(frozen, Mapping)
        with record.turn(self.attempt.run_id, surface="worker") as turn:
            if self._mine().exists():
                turn.append(kind, path, frozen)

    def attach(
        self, name: str, content: bytes | Path, media_type: str, path: EventPath
    ) -> dict[str, JSONValue]:
        digest, size = artifacts.keep(content)
        artifact: dict[str, JSONValue] = {
            "name": name[:300],
            "digest": digest,
            "byteLength": size,
            "mediaType": media_type[:255],
        }
        self.emit(EventKind.ARTIFACT, path, artifact)
        return artifact

    def _mine(self) -> Any:
        return Attempt.objects.filter(
            pk=self.attempt.pk, fence=self.fence, status=Attempt.Status.RUNNING
        )


class _EndTurn:
    """The turn that ends a start; gives None when another worker has the step by now."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._context = record.turn(start.attempt.run_id, surface="worker")

    def __enter__(self) -> Turn | None:
        start, turn = self._start, self._context.__enter__()
        won = start._mine().update(status=Attempt.Status.DONE, ended_at=turn.now)
        if won:
            return turn
        facts = {"number": start.attempt.number, "worker": worker_name()}
        turn.append(EventKind.STEP_REFUSED, start.path, facts)
        logger.warning("late result refused run=%s step=%s", turn.run.pk, "/".join(start.path))
        return None

    def __exit__(self, *error: Any) -> bool | None:
        return self._context.__exit__(*error)


def _state_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], ended: steps.Ended
) -> tuple[dict[str, Any], steps.Ended]:
    """What the step changed in `ctx.state`, as part of its end (runs.md R4)."""
    try:
        changed = {
            key: snapshot(value)
            for key, value in after.items()
            if key not in before or canonical_json(value) != canonical_json(before[key])
        }
    except JsonValueError as error:
        refused = LoopError("VALIDATION", f"ctx.state holds what is no JSON: {error}", phase="body")
        return {}, steps.Ended(outcome=failing(refused), error=refused)
    removed = [key for key in before if key not in after]
    if not changed and not removed:
        return {}, ended
    return {"state": {"set": changed, "removed": removed}}, ended
