"""One session of a run in one process: the record in memory, the steps on threads."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from runs.drivers import checks, execute
from runs.drivers.context import Context, Workspace
from runs.drivers.ports import Callbacks
from runs.kernel import decide as decisions
from runs.kernel.decide import NO_USAGE, StartStep
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind
from runs.kernel.events import Path as EventPath
from runs.kernel.gate import validate_callback_request
from runs.kernel.jsonable import JSONValue, sha256_bytes, thaw
from runs.kernel.outcomes import Outcome
from runs.kernel.slots import JOB, RunState
from runs.kernel.state import reduce
from runs.shapes.job import Job, Leaf, job_at

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
MAX_THREADS: Final = 4096
OnEvent = Callable[[dict[str, JSONValue]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What `run` returns (runs.md R200); `events` is the whole record, `artifacts` by digest."""

    outcome: Outcome
    usage: Mapping[str, int]
    events: tuple[Event, ...]
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)
    run_id: str | None = None
    record_path: str | None = None
    monitor: Any = None
    budget: Any = None
    cost: Any = None


class MemorySession:
    """One session: the record, the folded state and the threads that do the steps."""

    def __init__(
        self,
        job: Job,
        *,
        params: Mapping[str, Any],
        shared: MutableMapping[str, Any],
        client: Callbacks,
        attended: bool,
        on_event: OnEvent | None,
        cancel: Any,
        workspace: Path,
        run_id: str | None,
        more: Mapping[str, Any],
    ) -> None:
        self.job = job
        self.shape = job.shape
        self.params = params
        self.shared = shared
        self.client = client
        self.attended = attended
        self.on_event = on_event
        self.cancel = cancel
        self.workspace = workspace
        self.run_id = run_id
        # Two runs in one process never share a key, named or not.
        self.name = run_id or uuid.uuid4().hex
        self.more = more
        self.events: list[Event] = []
        self.artifacts: dict[str, bytes] = {}
        self.state = RunState()
        self.lock = threading.RLock()
        self.read = 0
        self.client_used = False

    # --- the record ------------------------------------------------------------------------------

    def append(self, kind: str, path: EventPath, fields: Mapping[str, Any]) -> None:
        """Record one event: number it, fold it, tell the listener."""
        with self.lock:
            event = Event(kind, path, fields, seq=len(self.events) + 1, ts=_now())
            self.state = reduce(self.state, event)
            self.events.append(event)
            if self.on_event is not None:
                try:
                    # A copy: what a listener does to it does not reach the record.
                    self.on_event(thaw(event.to_wire()))
                except Exception:  # a listener never harms the run (runs.md R199)
                    logger.exception("on_event raised run=%s kind=%s", self.name, kind)

    def record(self, events: Iterable[Event]) -> None:
        """Record what was decided; a question goes to the client, which says what came of it."""
        for event in events:
            if event.kind in CALLBACK_KINDS:
                self._ask(event)
            else:
                self.append(event.kind, event.path, event.fields)

    def _ask(self, event: Event) -> None:
        if event.kind == EventKind.REQUESTED:
            self.client.post(validate_callback_request(event.fields["request"]))
        elif event.kind == EventKind.SUPERSEDED:
            self.client.supersede(event.fields["requestId"], event.fields["supersededBy"])
        self._read_client(path=event.path)

    def _read_client(self, path: EventPath = (), *, quietly: bool = False) -> None:
        """Fold what happened to the questions since the last look."""
        with self.lock:
            history = self.client.history()
            for wire in history[self.read :]:
                fields = {key: value for key, value in wire.items() if key != "kind"}
                if quietly:
                    self.state = reduce(self.state, Event(wire["kind"], path, fields))
                else:
                    self.append(wire["kind"], path, fields)
            self.read = len(history)

    # --- the port of a running step --------------------------------------------------------------

    @property
    def callbacks(self) -> Callbacks:
        """The client, for a step; what it does with it is read into the record afterwards."""
        self.client_used = True
        return self.client

    def emit(self, kind: str, path: EventPath, fields: dict[str, JSONValue]) -> None:
        """Record an event of a step; nothing follows the end of the run (runs.md R195)."""
        with self.lock:
            if self.state.ended is None:
                self.append(kind, path, fields)

    def attach(
        self, name: str, content: bytes | Path, media_type: str, path: EventPath
    ) -> dict[str, JSONValue]:
        """Keep bytes in the result of the run."""
        kept = content.read_bytes() if isinstance(content, Path) else content
        artifact: dict[str, JSONValue] = {
            "name": name,
            "digest": sha256_bytes(kept),
            "byteLength": len(kept),
            "mediaType": media_type,
        }
        self.artifacts[sha256_bytes(kept)] = kept
        self.emit(EventKind.ARTIFACT, path, artifact)
        return artifact

    def leave_thread(self) -> None:
        """A thread of a step holds nothing here."""

    # --- the crank -------------------------------------------------------------------------------

    def run(self) -> RunResult:
        """Turn the crank until the run ends or leaves at a question."""
        self._read_client(quietly=True)
        start: dict[str, Any] = {"session": 1}
        if self.run_id is not None:
            start["runId"] = self.run_id
        if self.params:
            start["params"] = self.params
        before = self.state
        self.append(EventKind.RUN_START, (), start)
        # The graphs limit what runs at once; the pool starts a thread only when none is idle.
        with ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="step") as pool:
            try:
                self._turn(pool, before)
            except BaseException:
                # Leaving waits for the steps at work: let them know that nobody waits for them.
                self.cancel.set()
                raise
        assert self.state.ended is not None
        return RunResult(
            outcome=self.state.ended,
            usage=NO_USAGE,
            events=tuple(self.events),
            artifacts=self.artifacts,
            run_id=self.run_id,
        )

    def _turn(self, pool: ThreadPoolExecutor, before: RunState) -> None:
        working: set[Future[None]] = set()
        while True:
            self._settle(attended=self.attended)
            with self.lock:
                due, before = decisions.commands(self.shape, before, self.state), self.state
            working |= {pool.submit(self._step, it) for it in due if isinstance(it, StartStep)}
            if self.state.ended is not None:
                return
            if working:
                limit = min(POLL_SECONDS, self._until_wake())
                done, working = wait(working, timeout=limit, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
            elif self.state.waits and not self.state.cancelled:
                self.cancel.wait(min(POLL_SECONDS, self._until_wake()))
            elif self._question_is_open():
                self.cancel.wait(POLL_SECONDS / 5)
            else:
                self._settle(attended=False)
                if self.state.ended is None:
                    raise RuntimeError("the run neither works nor waits; please report this.")
                return

    def _until_wake(self) -> float:
        """Seconds until something that waits for its time may go on."""
        waits = self.state.waits.values()
        return max(0.0, (min(waits) - _now()) / 1000) if waits else POLL_SECONDS

    def _question_is_open(self) -> bool:
        requests = self.state.callbacks.requests
        return any(
            slot.status == "asking"
            and (held := requests.get(slot.request_id)) is not None
            and held.is_live
            for slot in self.state.slots.values()
        )

    def _settle(self, *, attended: bool) -> None:
        with self.lock:
            if self.client_used or self.state.callbacks.requests:
                self._read_client()
            if self.cancel.is_set() and not self.state.cancelled:
                reason = str(getattr(self.cancel, "reason", ""))
                self.append(EventKind.RUN_CANCEL, (), {"reason": reason})
            while events := decisions.decide(self.shape, self.state, _now(), attended=attended):
                self.record(events)

    # --- one step --------------------------------------------------------------------------------

    def _step(self, start: StartStep) -> None:
        if start.task != JOB:
            self._check(start)
            return
        with self.lock:
            if not self._is_due(start):
                return
            leaf = job_at(self.job, start.path, self.state.loops)
            assert isinstance(leaf, Leaf)
            ctx = self._context(start)
            self.append(EventKind.JOB_START, start.path, {"label": leaf.shape.label})
        started = time.monotonic()
        ended = execute.run_leaf(leaf, ctx)
        duration = round((time.monotonic() - started) * 1000)
        with self.lock:
            if self.client_used:
                self._read_client(path=start.path)
            if ended.error is not None:
                self.append(EventKind.ERROR, start.path, execute.error_fields(ended.error))
            if ended.asking is not None:
                place = decisions.place_at(self.shape, self.state, start.path)
                self.record(execute.bind(self.state, place, ended.asking, _now()))
                return
            fields = execute.end_fields(leaf.shape, ended, duration)
            self.append(EventKind.JOB_END, start.path, fields)

    def _check(self, start: StartStep) -> None:
        with self.lock:
            if not self._is_due(start):
                return
            ctx, state = self._context(start), self.state
        found = checks.run_check(self.job, start.path, start.task, state, ctx)
        with self.lock:
            if self._is_due(start):
                for event in checks.check_events(start.path, start.task, self.state, found, _now()):
                    self.append(event.kind, event.path, event.fields)

    def _is_due(self, start: StartStep) -> bool:
        return self.state.queued.get((start.task, start.path)) == start.number

    def _context(self, start: StartStep) -> Context:
        position = execute.position_of(self.shape, self.state, start.path, start.task)
        return Context(
            run_id=self.name,
            path=start.path,
            params=self.params,
            state=self.shared,
            workspace=Workspace(dir=self.workspace),
            port=self,
            signal=self.cancel,
            idempotency_key=execute.idempotency_key(self.name, self.state, start.path),
            needs=position.needs,
            graph=position.graph,
            last_review=position.last_review,
            last_outcome=position.last_outcome,
            last_gate=position.last_gate,
            iteration=position.iteration,
            depth=position.depth,
            on_callback="wait" if self.attended else "exit",
            timeout_ms=position.timeout_ms,
            timeout_grace_ms=position.timeout_grace_ms,
            **self.more,
        )


def _now() -> int:
    return time.time_ns() // 1_000_000
