"""A git worktree and branch of a step's own, and how its work lands (runs.md R68-R73, R128)."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from runs.engines.command import met
from runs.engines.filelock import NotWaited, locked
from runs.engines.git import Git, GitFailed, common_dir, root_of, why
from runs.kernel.slugs import slug

_MOST_BRANCHES: Final = 10_000
_MARKERS: Final = (b"<<<<<<< ", b">>>>>>> ")
Ask = Callable[[], bool]


class NoFork(Exception):
    """There is nothing to fork off; the text says why."""


class Conflict(GitFailed):
    """Two sides changed the same lines."""

    def __init__(self, branch: str, files: list[str]) -> None:
        super().__init__(f"{branch} conflicts in {', '.join(files)}")
        self.files = files


@dataclass(frozen=True, slots=True, kw_only=True)
class Discarded:
    """A deleted branch whose commits never landed (runs.md R19)."""

    branch: str
    sha: str


@dataclass(slots=True, kw_only=True)
class Closed:
    """What is left of a fork; `troubles` are failures to clean up, which change no outcome."""

    discarded: Discarded | None = None
    troubles: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A branch in a worktree of its own, forked off what `parent` has checked out."""

    parent: Git
    tree: Git
    branch: str
    base: str
    dir: Path
    """Where the step works: the same place in the worktree as in the workspace."""
    shared: Path
    left_out: tuple[str, ...] = ()
    """What was pending in the workspace, and is not in the fork."""

    def head(self) -> str:
        """The last commit of the worktree."""
        return self.tree.line("rev-parse", "HEAD")

    def commit_remains(self, message: str) -> bool:
        """Commit what is not committed yet; False when there is nothing."""
        if unmerged := _unmerged(self.tree):
            raise Conflict(self.branch, unmerged)
        self.tree.says("add", "--all")
        if met(self.tree.attempt("diff", "--cached", "--quiet")):
            return False
        self.tree.commit("commit", "-q", "--no-verify", "-m", message)
        return True

    def land(self, message: str, cancelled: Ask, may_land: Ask) -> str | None:
        """Merge into the parent, one at a time; the merge commit, None when nothing is new.

        `may_land` is asked when the turn has come. Raises Conflict and GitFailed with the parent
        as it was, NotWaited when it was cancelled first or may not land.
        """
        with locked(_lock(self.shared), cancelled):
            if not may_land():
                raise NotWaited("another worker has this step by now.")
            sha = self.head()
            if _is_in(self.parent, sha):
                return None
            if met(self.parent.attempt("rev-parse", "-q", "--verify", "MERGE_HEAD")):
                raise GitFailed("a merge is under way in the workspace already")
            try:
                self.parent.commit("merge", "--no-ff", "--no-verify", "-q", "-m", message, sha)
            except GitFailed:
                files = _unmerged(self.parent)
                self.parent.attempt("merge", "--abort")
                if files:
                    raise Conflict(self.branch, files) from None
                raise
            return self.parent.line("rev-parse", "HEAD")

    def take_in_parent(self) -> list[str]:
        """Begin to merge the parent into the fork; the files in conflict are somebody's to mend."""
        head = self.parent.line("rev-parse", "HEAD")
        tried = self.tree.attempt("merge", "--no-ff", "--no-commit", "-q", head)
        files = _unmerged(self.tree)
        if not met(tried) and not files:
            raise GitFailed(why(tried))
        return files

    def conclude(self, files: list[str], message: str) -> None:
        """Commit the mended merge; raises Conflict while a marker of git's is left in a file."""
        left = [name for name in files if _is_marked(self.tree.directory / name)]
        if left:
            raise Conflict(self.branch, left)
        self.tree.says("add", "--all", "--", *files)
        self.commit_remains(message)

    def close(self, *, keep_branch: bool) -> Closed:
        """Remove the worktree, and the branch unless it is kept (runs.md R72)."""
        closed = Closed()
        sha = ""
        try:
            sha = self.head()
        except GitFailed as error:
            closed.troubles.append(str(error))
        removed = self.parent.attempt(
            "worktree", "remove", "--force", "--force", str(self.tree.directory)
        )
        if not met(removed):
            shutil.rmtree(self.tree.directory, ignore_errors=True)
            if self.tree.directory.exists():
                closed.troubles.append(why(removed))
        with contextlib.suppress(OSError):
            self.tree.directory.parent.rmdir()
        if not keep_branch:
            self._drop_branch(sha, closed)
        return closed

    def _drop_branch(self, sha: str, closed: Closed) -> None:
        dropped = self.parent.attempt("branch", "-q", "-D", self.branch)
        if not met(dropped):
            closed.troubles.append(why(dropped))
        elif sha and sha != self.base and not _is_in(self.parent, sha):
            closed.discarded = Discarded(branch=self.branch, sha=sha)


def open_fork(workspace: Path, name: str, cancelled: Ask) -> Fork:
    """A new branch `lines/<slug>-<n>` from HEAD in a worktree beside the repository.

    A name that exists already is skipped, as is its number. Raises NoFork where there is no
    repository or no commit, GitFailed where git cannot, NotWaited when cancelled first.
    """
    root = root_of(workspace)
    if root is None:
        raise NoFork(f"{workspace} is no git repository")
    parent = Git(root)
    if not met(parent.attempt("rev-parse", "-q", "--verify", "HEAD^{commit}")):
        raise NoFork("the repository has no commit yet")
    shared = common_dir(parent)
    with locked(_lock(shared), cancelled):
        base = parent.line("rev-parse", "HEAD")
        branch, place = _add(parent, _folder(shared), slug(name), base)
    # What git tells a step to do with its own worktree stops when the run is cancelled.
    inside = place / workspace.resolve().relative_to(root.resolve())
    inside.mkdir(parents=True, exist_ok=True)
    return Fork(
        parent=parent,
        tree=Git(place),
        branch=branch,
        base=base,
        dir=inside,
        shared=shared,
        left_out=_left_out(parent),
    )


def _add(parent: Git, folder: Path, name: str, base: str) -> tuple[str, Path]:
    for number in range(1, _MOST_BRANCHES):
        branch, place = f"lines/{name}-{number}", folder / f"{name}-{number}"
        taken = met(parent.attempt("show-ref", "--verify", "-q", f"refs/heads/{branch}"))
        if taken or place.exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        parent.says("worktree", "add", "-q", "-b", branch, str(place), base)
        return branch, place
    raise GitFailed(f"all names lines/{name}-<n> are taken")


def _folder(shared: Path) -> Path:
    """The folder of the worktrees: beside the repository, so that no tool takes it for a part."""
    repository = shared.parent if shared.name == ".git" else shared
    beside = repository.with_name(f"{repository.name}.obversa-worktrees")
    try:
        beside.mkdir(parents=True, exist_ok=True)
    except OSError:
        # Nothing may be written there; inside the repository's own folder it is out of sight too.
        return shared / "obversa" / "worktrees"
    return beside


def _lock(shared: Path) -> Path:
    return shared / "obversa" / "land.lock"


def _left_out(parent: Git) -> tuple[str, ...]:
    told = parent.attempt("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal")
    return tuple(entry[3:] for entry in told.stdout.split("\0") if entry) if met(told) else ()


def _is_in(git: Git, sha: str) -> bool:
    return met(git.attempt("merge-base", "--is-ancestor", sha, "HEAD"))


def _unmerged(git: Git) -> list[str]:
    told = git.says("diff", "--name-only", "--diff-filter=U", "-z")
    return [name for name in told.split("\0") if name]


def _is_marked(file: Path) -> bool:
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return False
    return any(line.startswith(_MARKERS) for line in lines)
