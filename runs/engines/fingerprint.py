"""What a working directory holds, as one digest: did a round change anything (runs.md R169)."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Final

_LIMIT_SECONDS: Final = 60
# Our own records and homes are no work of a step.
_OURS: Final = (":(exclude,top).obversa", ":(exclude,top,glob)**/.obversa/**")


def fingerprint(folder: Path) -> str | None:
    """The digest of HEAD, the pending diff and the untracked files; None outside git."""
    head = _git(folder, "rev-parse", "HEAD")
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        return None
    diff = _git(
        folder, "diff", "--binary", "--no-ext-diff", *(("HEAD",) if head else ()), "--", *_OURS
    )
    listed = _git(
        folder, "ls-files", "--others", "--exclude-standard", "-z", "--full-name", "--", *_OURS
    )
    if diff is None or listed is None:
        return None
    digest = hashlib.sha256()
    for part in (head or b"", diff):
        digest.update(b"%d:" % len(part) + part)
    root = Path(top.decode().rstrip("\n"))
    for name in sorted(filter(None, listed.split(b"\0"))):
        digest.update(
            b"%d:" % len(name) + name + _content(root / name.decode(errors="surrogateescape"))
        )
    return digest.hexdigest()


def _content(file: Path) -> bytes:
    """The digest of one file; a link counts by where it points."""
    try:
        if file.is_symlink():
            return hashlib.sha256(bytes(file.readlink())).digest()
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").digest()
    except OSError:
        return b"unreadable"


def _git(folder: Path, *arguments: str) -> bytes | None:
    try:
        done = subprocess.run(  # noqa: S603 - our own fixed arguments, no shell
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - git is where the machine has it
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
