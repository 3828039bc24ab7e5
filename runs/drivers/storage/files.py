"""Files of a store: written once under their final name or not at all (graph.md K88)."""

from __future__ import annotations

import hashlib
import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path

from runs.drivers.errors import StorageError


def hashed(name: str) -> str:
    """A name as a folder's: 64 hex digits."""
    return hashlib.sha256(name.encode()).hexdigest()


def folder(root: Path, *names: str, make: bool = False) -> Path | None:
    """A managed folder below the root; None when it is not there and not to be made.

    Raises UNSAFE_STORAGE_PATH for a link, or anything else than a folder, on the way.
    """
    at = root
    if make:
        try:
            at.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError:
            raise unsafe(at) from None
    for name in names:
        at = at / name
        if make:
            with suppress(FileExistsError):
                at.mkdir(mode=0o700)
        try:
            mode = at.lstat().st_mode
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise unsafe(root) from None
        if not stat.S_ISDIR(mode):
            raise unsafe(at)
    return at


def read(path: Path) -> bytes:
    """The bytes of a managed file; raises UNSAFE_STORAGE_PATH when it is no plain file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unsafe(path) from error
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise unsafe(path)
        return file.read()


def write_once(path: Path, content: bytes, scratch: Path) -> bool:
    """Put the bytes there for good; False when something has that name already.

    The link is what decides: of several writers exactly one gets the name, and whoever reads
    the name reads all of it.
    """
    waiting = scratch / uuid.uuid4().hex
    try:
        with waiting.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        waiting.chmod(0o400)
        try:
            os.link(waiting, path)
        except FileExistsError:
            return False
        _force(path.parent)
    finally:
        waiting.unlink(missing_ok=True)
    return True


def _force(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def unsafe(path: Path) -> StorageError:
    """The error for a managed path that somebody put something else at."""
    text = f"{path.name} is a link, or not what the store keeps there."
    return StorageError("UNSAFE_STORAGE_PATH", text, path=str(path))
