"""The `ctx` of a job: what it may read, and the few things it may do (runs.md section 2)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack, cast

from runs.drivers import questions as asking
from runs.drivers.calling import ToolCalls
from runs.drivers.notes import GuardedCallbacks, Notes
from runs.drivers.ports import Callbacks, StepPort
from runs.drivers.signal import Signal
from runs.drivers.tools import Tools, Workspace
from runs.kernel.actions import Action
from runs.kernel.calls import Ready
from runs.kernel.conditions import ConditionResult
from runs.kernel.errors import LoopError, as_loop_error
from runs.kernel.events import EventKind
from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import JSONValue, frozen_object
from runs.kernel.outcomes import Outcome
from runs.kernel.questions import Answer, Question
from runs.kernel.state import is_folded
from runs.kernel.turns import AgentRequest, AgentResult
from runs.shapes.deadlines import Levels, OnExpiry
from runs.shapes.routing import Answering

T = TypeVar("T")

__all__ = ["Context", "GraphPosition", "Workspace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPosition:
    """Where a job stands in its graph (runs.md R10)."""

    dag: str
    node: str
    attempt: int
    path: tuple[str, ...]
    needs: tuple[str, ...] = ()
    dependents: tuple[str, ...] = ()
    desc: str | None = None
    gate: str | None = None
    isolate: bool = False
    on_conflict: str = "fail"
    file: str | None = None


@dataclass(kw_only=True)
class Context(Tools, ToolCalls):
    """One start of one job."""

    run_id: str
    path: tuple[str, ...]
    params: Mapping[str, Any]
    state: MutableMapping[str, Any]
    workspace: Workspace
    port: StepPort
    signal: Signal
    idempotency_key: str
    needs: Mapping[str, Outcome] | None = None
    graph: GraphPosition | None = None
    last_review: Outcome | None = None
    last_outcome: Outcome | None = None
    last_gate: ConditionResult | None = None
    rework: tuple[str, str] | None = None
    """Which attempt here answers a review, and the digest of the work before it."""
    checkpoint: Mapping[str, Any] | None = None
    """What this step kept when it asked a person (gates.md G151)."""
    iteration: int = 0
    rounds: tuple[int, ...] = ()
    loop_entries: tuple[str, ...] = ()
    """Names the loops around this job that watch the workspace, and which time each was entered."""
    depth: int = 0
    on_callback: str = "exit"
    on_limit: str = "auto"
    max_wait_ms: int = 300_000
    timeout_ms: int | None = None
    timeout_grace_ms: int | None = None
    env_overlay: Mapping[str, str] = field(default_factory=dict)
    environment: Any = None
    memory: Any = None
    engine: Any = None
    engines: Mapping[str, Any] = field(default_factory=dict)
    skipped_findings: tuple[Any, ...] = ()
    default_answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What counts for this run's questions that nobody answered in time, by request id."""
    overridden: frozenset[str] = frozenset()
    """The questions of this run that were answered over the heads of those who were asked."""
    approved: tuple[Ready, ...] = ()
    """Calls of tools that somebody allowed and that run before the job does."""
    actions: Mapping[str, Action] = field(default_factory=dict)
    """The calls of tools of this run by their keys, as they were when the job began."""
    dry_run: bool = False
    notes: Notes = field(default_factory=Notes)

    @property
    def callbacks(self) -> Callbacks:
        """The run's questions; what a step asks and answers holds no secret (runs.md R227)."""
        return cast("Callbacks", GuardedCallbacks(self.port.callbacks, self.notes))

    def emit(self, kind: str, **fields: JSONValue) -> None:
        """Record an event at this job's path; the kinds that move a run are not a job's to emit."""
        if is_folded(kind) and kind != EventKind.CONDITION:
            raise LoopError("VALIDATION", f"a job cannot emit {kind!r}: the run itself records it.")
        self.port.emit(kind, self.path, self.scrubbed(frozen_object("the event", fields)))

    def log(self, message: str, level: str = "info") -> None:
        """Record a line for the people who watch (runs.md R12)."""
        text = self.scrubbed(str(message))
        self.port.emit(EventKind.LOG, (), {"level": level, "message": text})

    def scrubbed(self, value: Any) -> Any:
        """JSON without injected environment values and secret-shaped text (runs.md R227)."""
        return self.notes.scrubber().json(value)

    def attach(
        self,
        name: str,
        source: bytes | str | Path,
        media_type: str = "application/octet-stream",
    ) -> dict[str, JSONValue]:
        """Keep bytes, text or a file with the run, addressed by their digest."""
        content = source.encode() if isinstance(source, str) else source
        return self.port.attach(self.scrubbed(name), content, media_type, self.path)

    def call(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Call the author's function, sync or async, with this context or the given arguments."""
        value = fn(*args) if args else fn(self)
        return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value

    def ask_questions(
        self,
        questions: Iterable[Question | Mapping[str, Any] | str],
        *,
        title: str = "",
        about: Any = None,
        per_attempt: bool = False,
        due_at: datetime | None = None,
        due_in_seconds: float | None = None,
        due_in_business_hours: float | None = None,
        expires_at: datetime | None = None,
        expires_in_seconds: float | None = None,
        expires_in_business_hours: float | None = None,
        on_expiry: OnExpiry = "reject",
        default_answer: Mapping[str, Any] | None = None,
        escalate_to: Levels | None = None,
        escalate_seconds: float | Sequence[float] | None = None,
        escalate_business_hours: float | Sequence[float] | None = None,
        calendar: Mapping[str, Any] | None = None,
        remind_before_seconds: Sequence[float] = (),
        **answering: Unpack[Answering],
    ) -> list[Answer]:
        """The answers of a person, in the order of the questions (interactions.md section 4).

        The step waits without a worker and is run again from its start when they are there: each
        call then gets the answers of the same call before, as long as it asks the same. A text is
        answered with a text, None when it was left out; `multiple` with a list. At most 20
        questions in a step and 100 in a run (design D11). The times are those of approval():
        expired, the step fails (`reject`) or goes on with `default_answer`, by key (`answer`). Who
        may answer is said as for approval().
        """
        return asking.ask(
            self,
            questions,
            title=title,
            about=about,
            per_attempt=per_attempt,
            answering=answering,
            time={
                "due_at": due_at,
                "due_in_seconds": due_in_seconds,
                "due_in_business_hours": due_in_business_hours,
                "expires_at": expires_at,
                "expires_in_seconds": expires_in_seconds,
                "expires_in_business_hours": expires_in_business_hours,
                "on_expiry": on_expiry,
                "default_answer": default_answer,
                "escalate_to": escalate_to,
                "escalate_seconds": escalate_seconds,
                "escalate_business_hours": escalate_business_hours,
                "calendar": calendar,
                "remind_before_seconds": remind_before_seconds,
            },
        )

    def asked(self, request: CallbackRequest) -> None:
        """Remember which question this job put, for its `job:end` (gates.md G108)."""
        self.notes.asked = request

    def with_env(self, overlay: Mapping[str, str]) -> Self:
        """The same context for what runs with more variables; inner ones win (runs.md R74)."""
        self.notes.inject(overlay)
        return replace(self, env_overlay={**self.env_overlay, **overlay})

    def resolve_engine(self, ref: Any = None) -> Any:
        """The engine instance for a reference; CONFIG when there is none (runs.md R11)."""
        wanted = self.engine if ref is None else ref
        if wanted is None:
            raise LoopError("CONFIG", "no engine is named here and the run has no default.")
        if isinstance(wanted, str):
            if wanted not in self.engines:
                raise LoopError("CONFIG", f"the run has no engine named {wanted!r}.")
            return self.engines[wanted]
        return wanted

    def take_turn(
        self,
        engine: Any,
        request: AgentRequest,
        *,
        record_as: Mapping[str, str] | None = None,
    ) -> AgentResult:
        """One turn of an engine, by name, instance or default (engines.md E16)."""
        from runs.drivers.turns import take_turn

        return take_turn(self, engine, request, record_as=record_as)

    def kept(self, identity: str) -> Mapping[str, Any] | None:
        """What this attempt kept under this identity in this workspace, if it did."""
        found = self.checkpoint
        if found is None or found["data"]["attempt"] != self._attempt:
            return None
        same = (found["identity"], found["workspace"]) == (identity, self._where)
        return found["data"] if same else None

    def keep(self, identity: str, data: Mapping[str, Any] | None) -> None:
        """Keep this over a wait for a person, or nothing any more."""
        held = None if data is None else {**self.scrubbed(data), "attempt": self._attempt}
        told: dict[str, JSONValue] = {
            "identity": identity,
            "workspace": self._where,
            "data": held,
        }
        self.port.emit(EventKind.CHECKPOINT, self.path, told)

    @property
    def _attempt(self) -> str:
        return self.idempotency_key.rpartition("/")[2]

    @property
    def _where(self) -> str:
        return str((self.workspace.origin or self.workspace.dir).absolute())

    def begin_rework(self, before: str) -> str:
        """The digest of the work as it was when this attempt began to answer its review (R51).

        A try that is made again compares with what was there before the first one.
        """
        if self.rework is not None and self.rework[0] == self._attempt:
            return self.rework[1]
        self.port.emit(EventKind.REWORK, self.path, {"attempt": self._attempt, "before": before})
        return before

    def in_workspace(self, workspace: Workspace) -> Self:
        """The same context in another working directory."""
        return replace(self, workspace=workspace)

    def in_environment(self, environment: Any, do: Callable[[Self], T]) -> T:
        """Do it with the environment up for this workspace, and take it down after (E131)."""
        try:
            running = self.call(environment.up, self.workspace, self.signal)
        except Exception as raised:
            error = as_loop_error(raised, fallback="CONFIG", phase="start")
            raise error from raised
        try:
            self.notes.inject(running.env)
            return do(replace(self, environment=running))
        finally:
            try:
                # Its own cancel: what a cancelled step had is taken down all the same.
                self.call(running.down, Signal())
            except Exception as raised:  # noqa: BLE001 - it changes nothing that was done (E134)
                text = f"the environment could not be taken down: {raised}"
                self.emit(EventKind.ERROR, message=text, code="ENGINE")

    def isolated(self, leaf: Any, *, label: str, on_conflict: str, record: Any) -> Any:
        """What a step came to in a worktree of its own (runs.md R68)."""
        from runs.drivers.execute import run_isolated

        inner = replace(self, path=(*self.path, label), depth=self.depth + 1)
        return run_isolated(leaf, inner, label, on_conflict=on_conflict, record=record)

    def judging(self, last: Outcome | None) -> Self:
        """The same context for a job whose outcome is a verdict on `last`."""
        return replace(self, last_outcome=last)

    def run_graph(self, graph: Any) -> Any:
        """Graphs and loops are walked by the driver, never from inside a step."""
        raise LoopError(
            "CONFIG",
            f"{graph.shape.name!r} was called from inside a job: make it a node or a body instead.",
        )


async def _awaited(value: Any) -> Any:
    return await value
