"""The `ctx` of a job: what it may read, and the few things it may do (runs.md section 2)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Self, TypeVar

from runs.drivers.notes import Notes
from runs.drivers.ports import Callbacks, StepPort
from runs.drivers.signal import Signal
from runs.engines import baseline as baselines
from runs.engines import changes
from runs.engines import command as commands
from runs.engines.git import GitFailed
from runs.kernel.commandline import COMMAND_TIMEOUT_MS
from runs.kernel.conditions import ConditionResult
from runs.kernel.errors import LoopError
from runs.kernel.events import EventKind
from runs.kernel.gate import CallbackRequest
from runs.kernel.jsonable import JSONValue, digest_hex, frozen_object
from runs.kernel.outcomes import Outcome
from runs.kernel.state import is_folded

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The working directory of a job; `origin` is the run's own, when this one was forked off."""

    dir: Path
    branch: str | None = None
    origin: Path | None = None


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


@dataclass(kw_only=True)
class Context:
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
    iteration: int = 0
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
    notes: Notes = field(default_factory=Notes)

    @property
    def callbacks(self) -> Callbacks:
        return self.port.callbacks

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

    def asked(self, request: CallbackRequest) -> None:
        """Remember which question this job put, for its `job:end` (gates.md G108)."""
        self.notes.asked = request

    def side_by_side(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """What the calls return, each on a thread of its own (runs.md R91)."""
        if len(calls) < 2:
            return [call() for call in calls]
        with ThreadPoolExecutor(len(calls), thread_name_prefix="side") as pool:
            return list(pool.map(self._on_a_thread, calls))

    def _on_a_thread(self, call: Callable[[], T]) -> T:
        try:
            return call()
        finally:
            self.port.leave_thread()

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

    def variables(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """What is set over the process's own environment; later wins (runs.md R74)."""
        running = getattr(self.environment, "env", None) or {}
        return {**running, **self.env_overlay, **(more or {})}

    def command(
        self,
        argv: Sequence[str],
        *,
        cwd: str | PurePath | None = None,
        timeout_ms: int = COMMAND_TIMEOUT_MS,
        env: Mapping[str, str] | None = None,
    ) -> commands.CommandResult:
        """Run a command in the workspace; its raw output is not scrubbed (runs.md R54, R55)."""
        variables = self.variables(env)
        self.notes.inject(variables)
        spec = commands.CommandSpec(
            argv=tuple(argv),
            cwd=self.workspace.dir if cwd is None else self.workspace.dir / cwd,
            env=variables,
            unset=commands.SERVICE_VARIABLES - variables.keys(),
            timeout_ms=timeout_ms,
        )
        return commands.run_command(spec, cancelled=self.signal.is_set)

    def run_command(
        self,
        argv: Sequence[str],
        *,
        cwd: str | PurePath | None,
        timeout_ms: int,
        env: Mapping[str, str],
        capture_output: bool,
    ) -> ConditionResult:
        """Run a command in the workspace and judge it by its exit code (runs.md R53-R59)."""
        result = self.command(argv, cwd=cwd, timeout_ms=timeout_ms, env=env)
        return self.judged(result, capture_output=capture_output)

    def judged(
        self, result: commands.CommandResult, *, capture_output: bool = False
    ) -> ConditionResult:
        """How a command ended, as a condition: scrubbed, and met on exit 0 in time."""
        good = commands.met(result)
        return ConditionResult(
            met=good,
            reason=commands.reason(result, capture=capture_output),
            output=None if good else commands.evidence(result),
            command=result.to_json(),
        )

    def find_file(self, path: str | PurePath) -> Path | None:
        """The file at a path in the workspace, or at an absolute one; None for none."""
        found = self.workspace.dir / path
        return found if found.is_file() else None

    def baseline(
        self, key: Mapping[str, JSONValue], value: float, *, down: bool, folder: Any
    ) -> baselines.Compared:
        """Hold a measurement of this workspace against its best one so far (runs.md R94)."""
        origin = self.workspace.origin or self.workspace.dir
        place = baselines.home() if folder is None else Path(folder).absolute()
        if folder is not None and place.resolve().is_relative_to(origin.resolve()):
            text = f"baseline_dir {str(folder)!r} lies in the workspace that it measures."
            raise LoopError("VALIDATION", text)
        name = digest_hex({**key, "workspace": str(origin.resolve())})
        return baselines.compare(place, name, value, down=down)

    def changed_paths(self, *, cwd: str | PurePath | None, since_entry: bool) -> list[str] | str:
        """The pending paths of the git workspace, or why they cannot be told (runs.md R77-R80)."""
        place = self.workspace.dir if cwd is None else self.workspace.dir / cwd
        since = self._entry(self.loop_entries[-1]) if since_entry and self.loop_entries else ""
        try:
            return changes.changed(place, self.signal.is_set, since=since)
        except (GitFailed, OSError) as error:
            return str(error)

    def remember_entry(self) -> None:
        """Before the first work in a loop: keep what is pending, to tell it from the loop's own."""
        for name in self.loop_entries:
            changes.remember(self._entry(name), self.workspace.dir, self.signal.is_set)

    def _entry(self, name: str) -> str:
        return f"{self.run_id}/{name}"

    def run_graph(self, graph: Any) -> Any:
        """Graphs are walked by the driver, never from inside a step."""
        raise LoopError(
            "CONFIG",
            f"the graph {graph.shape.name!r} was called from inside a job: make it a node instead.",
        )


async def _awaited(value: Any) -> Any:
    return await value
