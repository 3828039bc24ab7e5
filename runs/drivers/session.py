"""One session of a run in one process: the record in memory, the steps on threads."""

from __future__ import annotations

import functools
import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from signal import Signals
from typing import Any, Final

from runs.drivers import beginning, execute, resume, steps
from runs.drivers.budget import Budget, Purse
from runs.drivers.clock import now
from runs.drivers.environments import Upkeep, brought_up
from runs.drivers.heartbeat import beating
from runs.drivers.jsonl import Record, RecordFile
from runs.drivers.ports import Callbacks, Decide, Sink
from runs.drivers.pricing import Pricing
from runs.drivers.result import RunResult
from runs.drivers.unasked import not_asked
from runs.drivers.wakes import Wakes
from runs.kernel import decide as decisions
from runs.kernel.calls import Call, Surroundings
from runs.kernel.decide import StartStep
from runs.kernel.errors import LoopError
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind
from runs.kernel.events import Path as EventPath
from runs.kernel.evolving import evolve
from runs.kernel.gate import validate_callback_request
from runs.kernel.jsonable import JSONValue, sha256_bytes, thaw
from runs.kernel.slots import RunState
from runs.kernel.spending import KIND as ENGINE_USAGE
from runs.kernel.state import reduce
from runs.report.stats import stats_of
from runs.shapes.job import Job

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
MAX_THREADS: Final = 4096
OnEvent = Callable[[dict[str, JSONValue]], None]


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
        record_file: RecordFile | None = None,
        sinks: Sequence[Sink] = (),
        start: Mapping[str, JSONValue] | None = None,
        heartbeat_ms: int = 0,
        monitor: Any = None,
        pricing: Pricing | None = None,
        environment: Any = None,
        budget: Budget | None = None,
    ) -> None:
        """`start` are more facts of `run:start`; `sinks` hear every event after the record."""
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
        self.record_file = record_file
        self.past = Record() if record_file is None else record_file.past
        # Two runs in one process never share a key, named or not; one record keeps its name.
        self.name = resume.name_of(self.past) or run_id or uuid.uuid4().hex
        self.more = more
        self.sinks = (*(() if record_file is None else (record_file,)), *sinks)
        self.purse = None if budget is None else Purse(budget, lambda: self.state.spent_in_all)
        self.start = dict(start or {})
        self.heartbeat_ms = heartbeat_ms
        self.monitor = monitor
        self.pricing = pricing or Pricing()
        self.upkeep = Upkeep(environment)
        self.events: list[Event] = []
        self.artifacts: dict[str, bytes] = {}
        self.state = RunState()
        self.lock = threading.RLock()
        self.read = 0
        self.client_used = False
        self.wakes = Wakes(self._told_to_go)

    # --- the record ------------------------------------------------------------------------------

    def append(self, kind: str, path: EventPath, fields: Mapping[str, Any]) -> None:
        """Record one event: number it, fold it, tell whoever listens."""
        with self.lock:
            event = Event(kind, path, fields, seq=self.state.seq + 1, ts=now())
            self.state = reduce(self.state, event)
            self._tell(event)

    def only_tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Record an event whose effect is in the state already."""
        with self.lock:
            event = Event(kind, (), fields, seq=self.state.seq + 1, ts=now())
            self.state = evolve(self.state, seq=event.seq)
            self._tell(event)

    def _tell(self, event: Event) -> None:
        """Every listener hears the same events in the same order, the record first (R199)."""
        self.events.append(event)
        listeners: list[Callable[[], object]] = [
            functools.partial(sink.write, event) for sink in self.sinks
        ]
        if self.on_event is not None:
            # A copy: what a listener does to it does not reach the record.
            listeners.append(functools.partial(self.on_event, thaw(event.to_wire())))
        for tell in listeners:
            try:
                tell()
            except Exception:  # a listener never harms the run
                logger.exception("a listener raised run=%s kind=%s", self.name, event.kind)

    def record(self, events: Iterable[Event]) -> None:
        """Record what was decided; a question goes to the client, which says what came of it."""
        for event in events:
            if event.kind in CALLBACK_KINDS:
                if not self._asked(event):
                    # What else was decided is decided again, from what is now recorded.
                    return
            elif event.kind == EventKind.GRAPH_ANCHOR:
                # What is recorded counts in this workspace only (runs.md R230).
                self.append(event.kind, event.path, {**event.fields, "workspace": self.where})
            else:
                if event.kind == EventKind.RUN_END and (error := self.upkeep.down()):
                    self.append(EventKind.ERROR, (), execute.error_fields(error))
                self.append(event.kind, event.path, event.fields)

    def _asked(self, event: Event) -> bool:
        """Hand a question on; a store that refuses one fails the step that put it."""
        try:
            if event.kind == EventKind.REQUESTED:
                self.client.post(validate_callback_request(event.fields["request"]))
            elif event.kind == EventKind.SUPERSEDED:
                self.client.supersede(event.fields["requestId"], event.fields["supersededBy"])
            elif event.kind == EventKind.RELEASED:
                held = self.state.callbacks.requests[event.fields["requestId"]]
                self.client.release(held.request.request_id, held.claim_token or "")
        except Exception as error:
            failed = not_asked(self.shape, self.state, event.path, error)
            if not failed:
                raise
            logger.warning("question not put run=%s error=%s", self.name, type(error))
            for one in failed:
                self.append(one.kind, one.path, one.fields)
            return False
        self.read_client(path=event.path)
        return True

    def read_client(self, path: EventPath = (), *, quietly: bool = False) -> None:
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
                priced = self.pricing.priced(fields) if kind == ENGINE_USAGE else fields
                self.append(kind, path, priced)

    def stream(self, kind: str, path: EventPath, fields: dict[str, JSONValue]) -> None:
        """Tell the listener of the run; nothing of it is in the record (runs.md R216)."""
        with self.lock:
            if self.on_event is None or self.state.ended is not None:
                return
            try:
                self.on_event(Event(kind, path, fields, ts=now()).to_wire())
            except Exception:  # a listener never harms the run
                logger.exception("a listener raised run=%s kind=%s", self.name, kind)

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

    def act(self, decide: Decide, *, permission: str = "", call: Call | None = None) -> None:
        """Record what follows from the state; a process of one's own asks for no permission."""
        with self.lock:
            if self.state.ended is not None:
                raise LoopError("ABORTED", "the run has ended.", phase="body")
            if self.client_used or self.state.callbacks.requests:
                self.read_client()
            self.record(decide(self.state, Surroundings(), now()))

    def is_held(self) -> bool:
        """Nobody else in the world does a step of this session."""
        return True

    def engine_call(self, at_most: int | None) -> AbstractContextManager[None]:
        """Admit a call of an engine as far as the run's budget goes."""
        return nullcontext() if self.purse is None else self.purse.call(at_most)

    def leave_thread(self) -> None:
        """A thread of a step holds nothing here."""

    # --- the crank -------------------------------------------------------------------------------

    def run(self) -> RunResult:
        """Turn the crank until the run ends or leaves at a question."""
        try:
            return self._run()
        except BaseException:
            # Without a result nobody could ever take the page down.
            if self.monitor is not None:
                self.monitor.close()
            raise
        finally:
            for sink in self.sinks:
                try:
                    sink.close()
                except Exception:  # nor does it when it ends
                    logger.exception("a listener did not close run=%s", self.name)

    def _run(self) -> RunResult:
        # The graphs limit what runs at once; the pool starts a thread only when none is idle.
        with ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="step") as pool:
            try:
                with self.wakes.hearing(cancel=self.cancel), beating(self.heartbeat_ms, self._beat):
                    before = beginning.begin(self)
                    if brought_up(self, pool):
                        self._turn(pool, before)
            except BaseException:
                # Leaving waits for the steps at work: let them know that nobody waits for them.
                self.cancel.set()
                raise
            finally:
                self.upkeep.down()
        assert self.state.ended is not None
        stats = stats_of(self.events)
        return RunResult(
            outcome=self.state.ended,
            usage=self.state.spent.usage(),
            stats=stats,
            cost=self.pricing.report(stats),
            events=tuple(self.events),
            artifacts=self.artifacts,
            run_id=self.run_id,
            record_path=None if self.record_file is None else str(self.record_file.path),
            monitor=self.monitor,
            budget=None if self.purse is None else self.purse.told(),
        )

    def usage(self) -> Mapping[str, JSONValue]:
        """What the session has used so far, in the form of `run:end.usage`."""
        return self.state.spent.usage()

    @property
    def where(self) -> str:
        """The absolute path of the workspace."""
        return str(self.workspace.absolute())

    def _beat(self) -> None:
        self.emit(EventKind.HEARTBEAT, (), {})

    def _turn(self, pool: ThreadPoolExecutor, before: RunState) -> None:
        working = 0
        while True:
            self._settle(attended=self.attended)
            with self.lock:
                due, before = decisions.commands(self.shape, before, self.state), self.state
            for start in due:
                if isinstance(start, StartStep):
                    self.wakes.when_done(pool.submit(steps.do, self, start))
                    working += 1
            if self.state.ended is not None:
                return
            if working:
                working -= self.wakes.sleep(min(POLL_SECONDS, self._until_wake()))
            elif self.state.waits and not self.state.cancelled:
                self.wakes.sleep(min(POLL_SECONDS, self._until_wake()))
            elif self._question_is_open():
                self.wakes.sleep(POLL_SECONDS / 5)
            else:
                self._settle(attended=False)
                if self.state.ended is None:
                    raise RuntimeError("the run neither works nor waits; please report this.")
                return

    def _told_to_go(self, number: int) -> None:
        """Record that the process was told to go, before it goes (runs.md R258)."""
        self.append(EventKind.RUN_ABORT, (), {"signal": Signals(number).name})

    def _until_wake(self) -> float:
        """Seconds until something that waits for its time may go on."""
        waits = self.state.waits.values()
        return max(0.0, (min(waits) - now()) / 1000) if waits else POLL_SECONDS

    def _question_is_open(self) -> bool:
        """Whether the process may wait; for a question its person put aside it does not (G132)."""
        requests = self.state.callbacks.requests
        return any(
            slot.status == "asking"
            and not (slot.ask or {}).get("cancelled")
            and (held := requests.get(slot.request_id)) is not None
            and held.is_live
            for slot in self.state.slots.values()
        )

    def _settle(self, *, attended: bool) -> None:
        with self.lock:
            if self.client_used or self.state.callbacks.requests:
                self.read_client()
            if self.cancel.is_set() and not self.state.cancelled:
                reason = str(getattr(self.cancel, "reason", ""))
                self.append(EventKind.RUN_CANCEL, (), {"reason": reason})
            while events := decisions.decide(self.shape, self.state, now(), attended=attended):
                self.record(events)
