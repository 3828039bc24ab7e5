"""Bytes on their way into a store: a file of its own until it is whole."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, Storage

PREFIX: Final = ".part-"


class Draft:
    """What was written so far, under no name of the store."""

    def __init__(self, storage: Storage, file: IO[bytes], path: Path | None) -> None:
        self.file = file
        self._storage = storage
        self._path = path

    @property
    def is_here(self) -> bool:
        """Whether committing it is no more than giving it another name."""
        return self._path is not None

    def commit(self, name: str) -> None:
        """Give the bytes their name, at once and for good."""
        self.file.flush()
        if self._path is None:
            self.file.seek(0)
            saved = self._storage.save(name, File(self.file, name))
            if saved != name:
                # A store that never overwrites had it already.
                self._storage.delete(saved)
            return
        os.fsync(self.file.fileno())
        self._storage.save(name, _Moved(self.file, self._path))
        _sync(Path(self._storage.path(name)).parent)


class _Moved(File):  # type: ignore[type-arg]  # generic only in its stubs
    """A file that the file system's storage renames instead of reading it."""

    def __init__(self, file: Any, path: Path) -> None:
        super().__init__(file, path.name)
        self._path = path

    def temporary_file_path(self) -> str:
        return str(self._path)


@contextmanager
def draft(storage: Storage) -> Iterator[Draft]:
    """A new draft, gone at the end whether or not it was committed."""
    folder = folder_of(storage)
    if folder is None:
        # It has no name at all: whatever kills this process takes the draft along.
        with tempfile.TemporaryFile(dir=settings.OBVERSA_HOME) as file:
            yield Draft(storage, file, None)
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix=PREFIX)
    try:
        with os.fdopen(handle, "wb") as file:
            yield Draft(storage, file, Path(name))
    finally:
        Path(name).unlink(missing_ok=True)


def folder_of(storage: Storage) -> Path | None:
    """The folder of a store on a file system."""
    return Path(storage.location) if isinstance(storage, FileSystemStorage) else None


def clean(storage: Storage, older_than_seconds: float) -> int:
    """Remove what killed writers left behind; returns how many drafts that were."""
    # An object store keeps the parts of an upload that was never finished.
    given_up = getattr(storage, "give_up_uploads", None)
    if given_up is not None:
        return int(given_up(older_than_seconds))
    folder = folder_of(storage)
    if folder is None or not folder.is_dir():
        return 0
    cleaned = 0
    for path in folder.glob(f"{PREFIX}*"):
        try:
            if time.time() - path.stat().st_mtime > older_than_seconds:
                path.unlink()
                cleaned += 1
        except FileNotFoundError:
            continue  # its writer, or another sweep, was here
    return cleaned


def _sync(folder: Path) -> None:
    """Bring the new name to the disk too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
