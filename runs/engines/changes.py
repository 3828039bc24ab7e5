"""What is pending in a git workspace, file by file, and what was when a loop was entered."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from runs.engines.git import Git, GitFailed, common_dir, root_of

_KEPT_SECONDS: Final = 30 * 24 * 3600
_Cancelled = Callable[[], bool]


def changed(directory: Path, cancelled: _Cancelled, *, since: str = "") -> list[str]:
    """Every staged, unstaged and untracked path, relative to the directory (runs.md R77).

    What was pending already when `since` was remembered counts only where its status, its modes,
    its index entry or its content differ. Raises GitFailed outside a repository and wherever git
    cannot tell.
    """
    root = _root(directory, cancelled)
    before = _remembered(since, root, cancelled) if since else {}
    start = directory.resolve()
    return sorted(
        os.path.relpath(root / path, start)
        for path, state in _pending(root, cancelled).items()
        if before.get(path) != state
    )


def difference(directory: Path, revision: str, cancelled: _Cancelled) -> str | None:
    """How the working tree differs from the revision; untracked files by name. None outside git."""
    try:
        root = _root(directory, cancelled)
        told = Git(directory, cancelled).says(
            *("diff", "--no-ext-diff", "--no-textconv", "--end-of-options", revision, "--", ".")
        )
        listed = _entries(_status(root, cancelled))
    except GitFailed:
        return None
    news = [path for state, path in listed if state == "?"]
    return "\n".join([told.rstrip("\n"), *(f"new file: {path}" for path in news)]).strip("\n")


def remember(key: str, directory: Path, cancelled: _Cancelled) -> None:
    """Keep what is pending now under the key, unless something is kept there already.

    Where it cannot be kept, everything pending counts as changed later.
    """
    try:
        root = _root(directory, cancelled)
        place = _place(key, root, cancelled)
        if place.exists():
            return
        found = json.dumps(_pending(root, cancelled))
        place.parent.mkdir(parents=True, exist_ok=True)
        _forget_old(place.parent)
        part = place.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        part.write_text(found)
        try:
            # The first one stands: a step that began later may have seen another's work already.
            os.link(part, place)
        finally:
            part.unlink()
    except (GitFailed, OSError):
        return


def _remembered(key: str, root: Path, cancelled: _Cancelled) -> Mapping[str, str]:
    try:
        kept = json.loads(_place(key, root, cancelled).read_text())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _place(key: str, root: Path, cancelled: _Cancelled) -> Path:
    """A file that all worktrees share and no working tree shows."""
    name = hashlib.sha256(f"{key}\n{root}".encode()).hexdigest()
    return common_dir(Git(root, cancelled)) / "obversa" / "entered" / f"{name}.json"


def _root(directory: Path, cancelled: _Cancelled) -> Path:
    root = root_of(directory, cancelled)
    if root is None:
        raise GitFailed(f"{directory} is no git repository.")
    return root


def _pending(root: Path, cancelled: _Cancelled) -> dict[str, str]:
    """For each pending path what makes its state: status, modes, index entry and content."""
    listed = _entries(_status(root, cancelled))
    return {path: f"{state} {_content(root / path)}" for state, path in listed}


def _status(root: Path, cancelled: _Cancelled) -> str:
    return Git(root, cancelled).says(
        *("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"),
        "--ignore-submodules=none",
    )


def _entries(listed: str) -> Iterator[tuple[str, str]]:
    """State and path of each record; the number of fields before a path depends on its kind."""
    before = {"1": 8, "u": 10, "?": 1}
    for record in listed.split("\0"):
        if not record:
            continue
        fields = before.get(record[0])
        if fields is None:
            raise GitFailed("git status answered in an unknown form.")
        *state, path = record.split(" ", fields)
        yield " ".join(state), path.rstrip("/")


def _content(file: Path) -> str:
    try:
        if file.is_symlink():
            return f"link {file.readlink()}"
        if file.is_dir():
            return "directory"
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except FileNotFoundError:
        return "gone"
    except OSError as error:
        raise GitFailed(f"{file.name} cannot be read: {error.strerror}.") from error


def _forget_old(folder: Path) -> None:
    oldest = time.time() - _KEPT_SECONDS
    for file in folder.iterdir():
        try:
            if file.stat().st_mtime < oldest:
                file.unlink()
        except OSError:
            continue
