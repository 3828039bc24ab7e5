"""Run a job in one process, with the record in memory."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from runs.drivers import execute
from runs.drivers.callbacks import create_callback_client
from runs.drivers.context import Context, Workspace
from runs.drivers.ports import Callbacks
from runs.drivers.signal import Signal
from runs.kernel import decide as decisions
from runs.kernel.decide import NO_USAGE, StartStep
from runs.kernel.errors import LoopError
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind
from runs.kernel.events import Path as EventPath
from runs.kernel.gate import validate_callback_request
from runs.kernel.jsonable import JSONValue, JsonValueError, sha256_bytes, snapshot
from runs.kernel.outcomes import Outcome
from runs.kernel.state import RunState, reduce
from runs.shapes.job import Leaf, job_at, to_job, when_at

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
_RUN_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
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


def run(
    job: Any,
    *,
    params: Mapping[str, Any] | None = None,
    state: MutableMapping[str, Any] | None = None,
    callbacks: Callbacks | None = None,
    on_callback: Literal["exit", "wait"] = "exit",
    on_event: OnEvent | None = None,
    signal: Any = None,
    cwd: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    engine: Any = None,
    engines: Mapping[str, Any] | None = None,
    memory: Any = None,
) -> RunResult:
    """Run the job to its end, or to a question nobody has answered (runs.md section 11).

    Raises before anything starts for options that cannot be (R192); after that every failure is
    an outcome.
    """
    if on_callback not in ("exit", "wait"):
        raise ValueError('on_callback is "exit" or "wait".')
    if run_id is not None and not _RUN_ID.match(run_id):
        raise LoopError("CONFIG", f"run_id {run_id!r} is not of the form [a-z0-9][a-z0-9-]*.")
    if isinstance(engine, str) and engine not in (engines or {}):
        raise LoopError("CONFIG", f"the run has no engine named {engine!r}.")
    frozen = snapshot({} if params is None else params)
    if not isinstance(frozen, Mapping):
        raise JsonValueError("params is no JSON object.", "")
    session = MemorySession(
        to_job(job),
        params=frozen,
        shared={} if state is None else state,
        client=create_callback_client() if callbacks is None else callbacks,
        attended=on_callback == "wait",
        on_event=on_event,
        cancel=Signal() if signal is None else signal,
        workspace=Path(os.getcwd() if cwd is None else cwd),
        run_id=run_id,
        more={"engine": engine, "engines": dict(engines or {}), "memory": memory},
    )
    return session.run()


async def arun(job: Any, **options: Any) -> RunResult:
    """`run` for callers with an event loop; the loop stays free while the job works."""
    return await asyncio.to_thread(run, job, **options)


class MemorySession:
    """One session: the record, the folded state and the threads that do the steps."""

    def __init__(
        self,
        job: Any,
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
        self.callbacks = client
        self.attended = attended
        self.on_event = on_event
        self.cancel = cancel
        self.workspace = workspace
        self.run_id = run_id
        self.more = more
        self.events: list[Event] = []
        self.artifacts: dict[str, bytes] = {}
        self.state = RunState()
        self.lock = threading.RLock()
        self.read = 0

    # --- the record ------------------------------------------------------------------------------

    def append(self, kind: str, path: EventPath, fields: Mapping[str, Any]) -> None:
        """Record one event: number it, fold it, tell the listener."""
        with self.lock:
            event = Event(kind, path, fields, seq=len(self.events) + 1, ts=_now())
            self.state = reduce(self.state, event)
            self.events.append(event)
            if self.on_event is not None:
                try:
                    self.on_event(event.to_wire())
                except Exception:
                    logger.exception("on_event raised run=%s kind=%s", self.run_id, kind)

    def emit(self, kind: str, path: EventPath, fields: dict[str, JSONValue]) -> None:
        self.append(kind, path, fields)

    def attach(
        self, name: str, content: bytes | Path, media_type: str, path: EventPath
    ) -> dict[str, JSONValue]:
        kept = content.read_bytes() if isinstance(content, Path) else content
        digest = sha256_bytes(kept)
        self.artifacts[digest] = kept
        artifact: dict[str, JSONValue] = {
            "name": name,
            "digest": digest,
            "byteLength": len(kept),
            "mediaType": media_type,
        }
        self.append(EventKind.ARTIFACT, path, artifact)
        return artifact

    # --- the crank -------------------------------------------------------------------------------

    def run(self) -> RunResult:
        self._read_client(quietly=True)
        start: dict[str, Any] = {"session": 1}
        if self.run_id is not None:
            start["runId"] = self.run_id
        if self.params:
            start["params"] = self.params
        before = self.state
        self.append(EventKind.RUN_START, (), start)
        with ThreadPoolExecutor(thread_name_prefix="step") as pool:
            working: set[Future[None]] = set()
            while self.state.ended is None:
                self._settle()
                for command in decisions.commands(self.shape, before, self.state):
                    if isinstance(command, StartStep):
                        working.add(pool.submit(self._step, command))
                before = self.state
                if self.state.ended is None:
                    working = self._pause(working)
        assert self.state.ended is not None
        return RunResult(
            outcome=self.state.ended,
            usage=NO_USAGE,
            events=tuple(self.events),
            artifacts=self.artifacts,
            run_id=self.run_id,
        )

    def _pause(self, working: set[Future[None]]) -> set[Future[None]]:
        """Wait for a step to end, an answer to come, or a cancel."""
        if working:
            done, left = wait(working, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            return set(left)
        self.cancel.wait(POLL_SECONDS / 5)
        return working

    def _settle(self) -> None:
        with self.lock:
            self._read_client()
            if self.cancel.is_set() and not self.state.cancelled:
                self.append(EventKind.RUN_CANCEL, (), {"reason": getattr(self.cancel, "reason", "")})
            while events := decisions.decide(
                self.shape, self.state, _now(), attended=self.attended
            ):
                for event in events:
                    if event.kind in CALLBACK_KINDS:
                        self._ask(event)
                    else:
                        self.append(event.kind, event.path, event.fields)

    def _ask(self, event: Event) -> None:
        """The questions live in the client; the record hears of them from there."""
        if event.kind == EventKind.REQUESTED:
            self.callbacks.post(validate_callback_request(event.fields["request"]))
        elif event.kind == EventKind.SUPERSEDED:
            self.callbacks.supersede(event.fields["requestId"], event.fields["supersededBy"])
        self._read_client(path=event.path)

    def _read_client(self, path: EventPath = (), *, quietly: bool = False) -> None:
        """Fold what happened to the questions since the last look."""
        with self.lock:
            history = self.callbacks.history()
            for wire in history[self.read :]:
                fields = {key: value for key, value in wire.items() if key != "kind"}
                if quietly:
                    self.state = reduce(self.state, Event(wire["kind"], path, fields))
                else:
                    self.append(wire["kind"], path, fields)
            self.read = len(history)

    # --- one step --------------------------------------------------------------------------------

    def _step(self, command: StartStep) -> None:
        if command.task == "when":
            self._check(command)
            return
        leaf = job_at(self.job, command.path)
        assert isinstance(leaf, Leaf)
        with self.lock:
            if self.state.slots[command.path].status != "queued":
                return
            ctx = self._context(command)
            self.append(EventKind.JOB_START, command.path, {"label": leaf.shape.label})
        started = time.monotonic()
        ended = execute.run_leaf(leaf, ctx)
        with self.lock:
            self._read_client(path=command.path)
            if ended.error is not None:
                self.append(EventKind.ERROR, command.path, execute.error_fields(ended.error))
            if ended.asking is not None:
                place = decisions.place_at(self.shape, self.state, command.path)
                for event in execute.bind(self.state, place, ended.asking, _now()):
                    if event.kind in CALLBACK_KINDS:
                        self._ask(event)
                    else:
                        self.append(event.kind, event.path, event.fields)
                return
            duration = round((time.monotonic() - started) * 1000)
            fields = execute.end_fields(leaf.shape, ended, duration)
            self.append(EventKind.JOB_END, command.path, fields)

    def _check(self, command: StartStep) -> None:
        when = when_at(self.job, command.path)
        assert when is not None
        result = execute.run_check(when, self._context(command))
        with self.lock:
            if isinstance(result, LoopError):
                for event in execute.check_failed_events(command.path, self.state, result):
                    self.append(*event)
                return
            fields = {"label": "when", "iteration": 0, "result": result.to_json()}
            self.append(EventKind.CONDITION, command.path, fields)

    def _context(self, command: StartStep) -> Context:
        position = execute.position_of(self.shape, self.state, command.path)
        return Context(
            run_id=self.run_id or "run",
            path=command.path,
            params=self.params,
            state=self.shared,
            workspace=Workspace(dir=self.workspace),
            port=self,
            signal=self.cancel,
            idempotency_key=f"{self.run_id or 'run'}/{'/'.join(command.path)}/{command.number}",
            needs=position.needs,
            graph=position.graph,
            last_review=position.last_review,
            depth=len(command.path) // 2,
            on_callback="wait" if self.attended else "exit",
            timeout_ms=position.timeout_ms,
            timeout_grace_ms=position.timeout_grace_ms,
            **self.more,
        )


def _now() -> int:
    return time.time_ns() // 1_000_000


