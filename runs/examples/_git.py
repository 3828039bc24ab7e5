"""Git for a workflow that handles strangers' repositories: argument lists, no prompts, no hooks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
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
from runs.examples._roots import is_restricted
from runs.examples._source import SCHEMES, Refused

# A worker may itself have been started by git, inside another repository.
_REPOSITORY_VARIABLES: Final = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"),
        *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_CONFIG"),
        *("GIT_CONFIG_PARAMETERS", "GIT_EXTERNAL_DIFF", "GIT_CEILING_DIRECTORIES"),
    }
)
HIDDEN_VARIABLES: Final = _REPOSITORY_VARIABLES | SERVICE_VARIABLES

_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "core.quotePath=false",
    "protocol.ext.allow=never",
    "advice.detachedHead=false",
    "color.ui=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "log.showSignature=false",
    "i18n.logOutputEncoding=UTF-8",
    "tar.umask=0022",
    "submodule.recurse=false",
)
_ENVIRONMENT: Final = {
    # Nobody sits at a worker to be asked for a password or whether a host is the right one.
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_ALLOW_PROTOCOL": ":".join(SCHEMES),
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "LC_ALL": "C.UTF-8",
}
_IDENTITY: Final = {"NAME": "Obversa", "EMAIL": "release@obversa.invalid"}


def _ssh() -> str:
    return f"{os.environ.get('GIT_SSH_COMMAND') or 'ssh'} -oBatchMode=yes"


class Cancelled(Exception):
    """The run was cancelled while git worked."""


@dataclass(frozen=True, slots=True)
class Git:
    """Git in one directory; every call stops when the run is cancelled."""

    directory: Path
    cancelled: Callable[[], bool]

    def attempt(self, *arguments: str) -> CommandResult:
        """Run git and hand back how it ended, whatever that is."""
        # An allowed host may not send us on to one that is not.
        led = ("http.followRedirects=false",) if is_restricted() else ()
        settings = [part for setting in (*_SETTINGS, *led) for part in ("-c", setting)]
        result = run_command(
            CommandSpec(
                argv=("git", *settings, *arguments),
                cwd=self.directory,
                env={**_ENVIRONMENT, "GIT_SSH_COMMAND": _ssh()},
                unset=HIDDEN_VARIABLES,
            ),
            cancelled=self.cancelled,
        )
        if result.cancelled:
            raise Cancelled
        return result

    def run(self, *arguments: str, doing: str) -> str:
        """What git printed; raises Refused with `doing` and git's own words."""
        result = self.attempt(*arguments)
        if not met(result):
            raise Refused(f"{doing} failed. {complaint(result)}")
        return result.stdout

    def commit(self, revision: str) -> str | None:
        """The full id of the commit a revision names, or None."""
        result = self.attempt(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
        )
        return result.stdout.strip() if met(result) else None

    def origin(self) -> str:
        """Where this clone came from, and where a push goes."""
        return self.attempt("config", "--local", "--get", "remote.origin.url").stdout.strip()

    def identity(self) -> tuple[str, ...]:
        """Settings for a tagger, for a worker whose git knows none."""
        settings: list[str] = []
        for part, fallback in _IDENTITY.items():
            known = os.environ.get(f"GIT_COMMITTER_{part}")
            if not known and not met(self.attempt("config", "--get", f"user.{part.lower()}")):
                settings += ["-c", f"user.{part.lower()}={fallback}"]
        return tuple(settings)


def complaint(result: CommandResult) -> str:
    """Why git failed, in its own words, short and scrubbed."""
    if result.spawn_error is not None:
        return f"git could not be started: {result.spawn_error}."
    if result.timed_out:
        return f"git ran past its limit of {result.spec.timeout_ms} ms."
    said = scrub(result.stderr or result.stdout).strip()
    if "dubious ownership" in said:
        return (
            "The repository belongs to another user of this machine and git does not trust it. "
            "Add it to safe.directory in the git configuration of the worker's user."
        )
    return f"git says: {tail(said, 600)}" if said else reason(result)


def clone(workspace: Path, repository: str, cancelled: Callable[[], bool]) -> Git:
    """A fresh bare clone at `workspace/repository.git`, whole or not there at all.

    Bare, so that a test command gets a checkout of its own and nothing it does reaches the clone.
    """
    workspace.mkdir(parents=True, exist_ok=True)
    target = workspace / "repository.git"
    scratch = Path(tempfile.mkdtemp(prefix="clone-", dir=workspace))
    try:
        Git(scratch, cancelled).run(
            *("clone", "--bare", "--no-local", "--template=", "--quiet"),
            *("--", repository, "new.git"),
            doing=f"Cloning {repository}",
        )
        if target.exists():
            target.rename(scratch / "old.git")
        (scratch / "new.git").rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Git(target, cancelled)


def clone_holding(
    workspace: Path, repository: str, commit: str, cancelled: Callable[[], bool]
) -> Git:
    """The run's clone with this commit in it, made again when the workspace was emptied."""
    git = Git(workspace / "repository.git", cancelled)
    # Another run in the same directory may have left another repository here.
    if git.directory.is_dir() and git.origin() == repository and git.commit(commit) == commit:
        return git
    git = clone(workspace, repository, cancelled)
    if find_commit(git, commit) != commit:
        raise Refused(f"The commit {commit} is no longer in {repository}.")
    return git


def find_commit(git: Git, revision: str) -> str | None:
    """The commit of a revision; an id that no branch or tag reaches is asked for by name."""
    found = git.commit(revision)
    if found is None and len(revision) in {40, 64} and set(revision) <= set("0123456789abcdef"):
        git.attempt("fetch", "--quiet", "--no-tags", "origin", revision)
        found = git.commit(revision)
    return found
