"""Bytes that runs keep, addressed by their digest, on the file system."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from django.conf import settings

CHUNK: Final = 1024 * 1024
MAX_BYTES: Final = 2 * 1024 * 1024 * 1024


class ArtifactTooLarge(ValueError):
    """An artifact holds at most 2 GiB."""

    code = "artifact-too-large"


class ArtifactMissing(LookupError):
    """The bytes of this artifact are not on this machine."""

    code = "artifact-missing"


def _root() -> Path:
    root: Path = settings.OBVERSA_HOME / "artifacts"
    return root


def place(digest: str) -> Path:
    """Where the bytes of a `sha256:<64 hex>` digest lie."""
    name = digest.removeprefix("sha256:")
    if len(name) != 64 or not all(mark in "0123456789abcdef" for mark in name):
        raise ArtifactMissing(f"{digest!r} is no digest of an artifact.")
    return _root() / name[:2] / name[2:]


def keep(content: bytes | Path) -> tuple[str, int]:
    """Store the bytes; returns digest and size. Written aside first, so a kill leaves no half."""
    folder = _root()
    folder.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    handle, name = tempfile.mkstemp(dir=folder, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as target:
            for chunk in _chunks(content):
                size += len(chunk)
                if size > MAX_BYTES:
                    raise ArtifactTooLarge(f"an artifact holds at most {MAX_BYTES} bytes.")
                digest.update(chunk)
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
        address = f"sha256:{digest.hexdigest()}"
        final = place(address)
        final.parent.mkdir(exist_ok=True)
        Path(name).replace(final)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return address, size


def _chunks(content: bytes | Path) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as source:
        while chunk := source.read(CHUNK):
            yield chunk


def open_bytes(digest: str) -> IO[bytes]:
    """The stored bytes for reading; raises ArtifactMissing."""
    path = place(digest)
    if not path.is_file():
        raise ArtifactMissing(f"the bytes of {digest} are not here.")
    return path.open("rb")
