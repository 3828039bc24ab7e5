"""Git in a workspace: argument lists, no prompts, no hooks, and nobody else's repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runs.engines.command import (
    SERVICE_VARIABLES,
    CommandResult,
    CommandSpec,
    met,
    reason,
    run_command,
    tail,
)
from runs.engines.scrub import scrub

TIMEOUT_MS: Final = 120_000
_LONGEST_WHY: Final = 500
# A process started by git itself stands in another repository than its own directory says.
REPOSITORY_VARIABLES: Final = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"),
        *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_CONFIG"),
        *("GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_EXTERNAL_DIFF"),
    }
)
_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "color.ui=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)
_ENVIRONMENT: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_MERGE_AUTOEDIT": "no",
    "LC_ALL": "C.UTF-8",
}
_AUTHOR: Final = {"NAME": "Obversa", "EMAIL": "steps@obversa.invalid"}


class GitFailed(RuntimeError):
    """Git did not do what it was asked for; the text says why in its own words."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Git:
    """Git in one directory; every call stops when the run is cancelled."""

    directory: Path
    cancelled: Callable[[], bool] = _never

    def attempt(self, *arguments: str, env: Mapping[str, str] | None = None) -> CommandResult:
        """Run git and hand back how it ended, whatever that is."""
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        spec = CommandSpec(
            argv=("git", *settings, *arguments),
            cwd=self.directory,
            env={**_ENVIRONMENT, **(env or {})},
            unset=REPOSITORY_VARIABLES | SERVICE_VARIABLES,
            timeout_ms=TIMEOUT_MS,
        )
        return run_command(spec, cancelled=self.cancelled)

    def says(self, *arguments: str) -> str:
        """What git prints; raises GitFailed for any end but exit 0."""
        result = self.attempt(*arguments)
        if not met(result) or result.truncated:
            raise GitFailed(f"git {arguments[0]}: {why(result)}")
        return result.stdout

    def line(self, *arguments: str) -> str:
        """The one line that git prints."""
        return self.says(*arguments).rstrip("\n")

    def commit(self, *arguments: str) -> None:
        """Commit as whoever the repository names, or as this product where it names nobody."""
        known = met(self.attempt("var", "GIT_COMMITTER_IDENT"))
        named = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in _AUTHOR.items()
        }
        result = self.attempt(*arguments, env=None if known else named)
        if not met(result):
            raise GitFailed(f"git {arguments[0]}: {why(result)}")


def why(result: CommandResult) -> str:
    """What git said, on one line and short."""
    said = " ".join(scrub(f"{result.stdout}\n{result.stderr}").split())
    return tail(said, _LONGEST_WHY) if said else reason(result)


def root_of(directory: Path, cancelled: Callable[[], bool] = _never) -> Path | None:
    """The top of the repository whose working tree this directory belongs to; None for none.

    A directory that the repository ignores (a run's own folder inside a project) is no part of it.
    """
    git = Git(directory, cancelled)
    found = git.attempt("rev-parse", "--show-toplevel")
    if not met(found) or not found.stdout.strip():
        return None
    root = Path(found.stdout.rstrip("\n"))
    if root != directory.resolve() and met(git.attempt("check-ignore", "-q", ".")):
        return None
    return root


def common_dir(git: Git) -> Path:
    """Where all worktrees of the repository keep what they share."""
    found = Path(git.line("rev-parse", "--git-common-dir"))
    return (git.directory / found).resolve()
