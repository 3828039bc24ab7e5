"""What a step's code may have done in its workspace: commands, files, changes, measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import Any, Final, TypeVar

from runs.drivers.notes import Notes
from runs.drivers.ports import StepPort
from runs.drivers.signal import Signal
from runs.engines import baseline as baselines
from runs.engines import changes, contents
from runs.engines import command as commands
from runs.engines.git import GitFailed
from runs.kernel.commandline import COMMAND_TIMEOUT_MS
from runs.kernel.conditions import ConditionResult
from runs.kernel.errors import LoopError
from runs.kernel.jsonable import JSONValue, digest_hex

T = TypeVar("T")
READ_BYTES: Final = 1024 * 1024


class Workspace:
    """The working directory of a job; `origin` is the run's own, when this one was forked off.

    `dir` may be given as what makes the directory, for most steps never look for theirs.
    """

    __slots__ = ("_dir", "branch", "origin")

    def __init__(
        self,
        *,
        dir: Path | Callable[[], Path],  # noqa: A002 - what it is called on it
        branch: str | None = None,
        origin: Path | None = None,
    ) -> None:
        self._dir = dir
        self.branch = branch
        self.origin = origin

    @property
    def dir(self) -> Path:
        """The directory, which is there."""
        if not isinstance(self._dir, Path):
            self._dir = self._dir()
        return self._dir


class Tools:
    """The part of a context that works on the workspace."""

    run_id: str
    workspace: Workspace
    port: StepPort
    signal: Signal
    notes: Notes
    environment: Any
    env_overlay: Mapping[str, str]
    loop_entries: tuple[str, ...]

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

    def read_text(self, path: str | PurePath) -> str | None:
        """The text of a file in the workspace, as far as a reader needs it; None for none."""
        found = self.find_file(path)
        if found is None:
            return None
        with found.open("rb") as opened:
            return opened.read(READ_BYTES).decode("utf-8", "replace")

    def work_digest(self, files: Sequence[str] = ()) -> str | None:
        """What these files hold, or all of the workspace, as one digest (runs.md R51).

        None where the workspace holds too many files to tell.
        """
        if not files:
            return contents.digest_of_tree(self.workspace.dir)
        return contents.combined(contents.digests_of(self.workspace.dir, files))

    def file_digests(self, files: Sequence[str]) -> dict[str, str]:
        """What each of these files holds: a digest, `missing`, or `outside` of the workspace."""
        return contents.digests_of(self.workspace.dir, files)

    def unwritten(self, files: Sequence[str]) -> list[str]:
        """Those of the files that are not there, or empty."""
        return [name for name in files if not contents.is_written(self.workspace.dir, name)]

    def git_diff(self, revision: str) -> str | None:
        """How the workspace differs from a revision, untracked files by name; None outside git."""
        return changes.difference(self.workspace.dir, revision, self.signal.is_set)

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
