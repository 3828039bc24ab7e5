"""What files hold, by their content alone: committing or staging the same bytes is no change."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_LIMIT_SECONDS: Final = 60
MAX_FILES: Final = 20_000
MISSING: Final = "missing"
OUTSIDE: Final = "outside"
_OURS: Final = frozenset({".git", ".obversa"})


def digests_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """For each name the hex SHA-256 of its file; `missing` for none, `outside` for a way out.

    A link counts by what it leads to, as long as that lies in the folder (workflows.md W48).
    """
    root = folder.resolve()
    return {name: _digest(root, root / name) for name in names}


def is_written(folder: Path, name: str) -> bool:
    """Whether it is a plain file with something in it (workflows.md W26)."""
    root = folder.resolve()
    place = (root / name).resolve()
    try:
        return place.is_relative_to(root) and place.is_file() and place.stat().st_size > 0
    except OSError:
        return False


def combined(digests: dict[str, str]) -> str:
    """One digest of the ordered names and contents (workflows.md W77)."""
    whole = hashlib.sha256()
    for name, digest in digests.items():
        whole.update(f"{len(name)}:{name}{digest}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()


def digest_of_tree(folder: Path) -> str | None:
    """One digest of every file that is not ignored; None where they are too many to look at."""
    names = _names(folder)
    return None if names is None else combined(digests_of(folder, names))


def _digest(root: Path, place: Path) -> str:
    try:
        target = place.resolve()
        if not target.is_relative_to(root):
            return OUTSIDE
        with target.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        return f"unreadable {error.errno}"


def _names(folder: Path) -> list[str] | None:
    listed = _listed(folder)
    found = sorted(_walked(folder)) if listed is None else listed
    return None if len(found) > MAX_FILES else found


def _listed(folder: Path) -> list[str] | None:
    """What git tracks here or would take in; None outside a repository."""
    try:
        done = subprocess.run(  # noqa: S603 - our own fixed arguments, no shell
            ["git", "-C", str(folder), "ls-files", "-co", "--exclude-standard", "-z"],  # noqa: S607
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    names = {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}
    return sorted(name for name in names if not _OURS.intersection(Path(name).parts))


def _walked(folder: Path) -> Iterator[str]:
    count = 0
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _OURS]
        for name in files:
            count += 1
            if count > MAX_FILES + 1:
                return
            yield os.path.relpath(Path(at) / name, folder)
