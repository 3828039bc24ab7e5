"""The archive of a commit: the same commit gives the same bytes, whenever it is made."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from pathlib import Path

from runs.examples._git import Git


def write_archive(git: Git, commit: str, stem: str, directory: Path) -> Path:
    """Write `stem.tar.gz` with the commit's files below `stem/`."""
    tar, packed = directory / f"{stem}.tar", directory / f"{stem}.tar.gz"
    git.run(
        *("archive", "--format=tar", f"--prefix={stem}/", f"--output={tar}", commit),
        doing="Archiving the commit",
    )
    # Git gives the files the commit's time. Gzip would add a name and the time of today.
    with (
        tar.open("rb") as source,
        packed.open("wb") as target,
        gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0) as stream,
    ):
        shutil.copyfileobj(source, stream, 1 << 20)
    tar.unlink()
    return packed


def digest_of(path: Path) -> str:
    """The sha256 of a file, in the product's form."""
    with path.open("rb") as source:
        return f"sha256:{hashlib.file_digest(source, 'sha256').hexdigest()}"
