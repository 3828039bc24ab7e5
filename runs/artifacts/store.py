"""Bytes that runs keep, addressed by their digest, behind Django's storage API.

Two stores: `artifacts` holds the files of steps, `archive` the records of runs that left the
database; where the second has no place of its own, it is the first. Bytes go through in pieces, in
both directions. What lies under a digest is never changed, so several workers and web processes
share a store.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Final

from django.core.files.storage import Storage, storages

from runs.artifacts.drafts import draft

ARTIFACTS: Final = "artifacts"
ARCHIVE: Final = "archive"
CHUNK: Final = 1024 * 1024
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{2})([0-9a-f]{62})")

Content = bytes | Path | Iterable[bytes]


class ArtifactTooLarge(ValueError):
    """The bytes are more than may be kept."""

    code = "artifact-too-large"


class ArtifactMissing(LookupError):
    """The bytes of this digest are not in the store."""

    code = "artifact-missing"


class ArtifactChanged(ValueError):
    """The store holds other bytes under this digest than those that were written."""

    code = "artifact-changed"


def of(alias: str = ARTIFACTS) -> Storage:
    """The storage behind a store."""
    if alias == ARCHIVE and ARCHIVE not in storages.backends:
        alias = ARTIFACTS
    return storages[alias]


def name_of(digest: str) -> str:
    """The name of the bytes with a `sha256:<64 hex>` digest; raises ArtifactMissing for others."""
    found = _DIGEST.fullmatch(digest)
    if found is None:
        raise ArtifactMissing(f"{digest!r} is no digest of an artifact.")
    return f"{found[1]}/{found[2]}"


def keep(
    content: Content,
    *,
    at_most: int | None = None,
    alias: str = ARTIFACTS,
    admit: Callable[[str, int], None] = lambda digest, size: None,
    is_named: Callable[[str], bool] = lambda digest: False,
) -> tuple[str, int]:
    """Store the bytes; returns digest and size. Nothing has its name before it is whole.

    More than `at_most` bytes raise ArtifactTooLarge, and `admit` may refuse digest and size:
    nothing is kept then. `is_named` says of a digest whether a row names it already: such bytes
    are not sent once more to a store that has them.
    """
    storage = of(alias)
    with draft(storage) as written:
        digest, size = _poured(content, written.file, at_most)
        admit(digest, size)
        name = name_of(digest)
        # Bytes that no row names may be about to be cleaned away; those are sent anew.
        if written.is_here or not is_named(digest) or _size(storage, name) != size:
            written.commit(name)
    return digest, size


def _poured(content: Content, target: IO[bytes], at_most: int | None) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for chunk in _chunks(content):
        size += len(chunk)
        if at_most is not None and size > at_most:
            raise ArtifactTooLarge(f"It has more than {at_most:,} bytes.")
        digest.update(chunk)
        target.write(chunk)
    return f"sha256:{digest.hexdigest()}", size


def _chunks(content: Content) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
    elif isinstance(content, Path):
        with content.open("rb") as source:
            while chunk := source.read(CHUNK):
                yield chunk
    else:
        yield from content


def open_bytes(digest: str, *, alias: str = ARTIFACTS) -> IO[bytes]:
    """The stored bytes for reading, unchecked; raises ArtifactMissing."""
    try:
        return of(alias).open(name_of(digest), "rb")
    except (FileNotFoundError, IsADirectoryError) as missing:
        raise _missing(digest) from missing


def need_size(digest: str, size: int, *, alias: str = ARTIFACTS) -> None:
    """Raise ArtifactMissing or ArtifactChanged where not as many bytes lie under the digest."""
    there = _size(of(alias), name_of(digest))
    if there is None:
        raise _missing(digest)
    if there != size:
        raise _changed(digest, f"There are {there:,} of {size:,}.")


def _size(storage: Storage, name: str) -> int | None:
    try:
        return storage.size(name)
    except FileNotFoundError:
        return None


def checked(digest: str, size: int | None = None, *, alias: str = ARTIFACTS) -> Iterator[bytes]:
    """The bytes in pieces, the last of them only once all have the digest.

    Raises ArtifactMissing or ArtifactChanged; of what fits into one piece nothing was given then,
    of more never the end.
    """
    if size is not None:
        need_size(digest, size, alias=alias)
    found, held = hashlib.sha256(), b""
    with open_bytes(digest, alias=alias) as source:
        while chunk := source.read(CHUNK):
            if held:
                yield held
            found.update(chunk)
            held = chunk
    if f"sha256:{found.hexdigest()}" != digest:
        raise _changed(digest, "They are not those that were written.")
    if held:
        yield held


def need_whole(digest: str, size: int | None = None, *, alias: str = ARTIFACTS) -> None:
    """Read the bytes to their end; raises ArtifactMissing or ArtifactChanged."""
    for _ in checked(digest, size, alias=alias):
        pass


def _missing(digest: str) -> ArtifactMissing:
    return ArtifactMissing(f"The bytes of {digest} are not in the store.")


def _changed(digest: str, why: str) -> ArtifactChanged:
    return ArtifactChanged(f"The bytes of {digest} were changed in the store. {why}")


def digests(alias: str = ARTIFACTS) -> Iterator[str]:
    """Every digest whose bytes lie in the store; what else lies there is nobody's business."""
    storage = of(alias)
    for folder in _listed(storage, "")[0]:
        if len(folder) == 2:
            for name in _listed(storage, folder)[1]:
                digest = f"sha256:{folder}{name}"
                if _DIGEST.fullmatch(digest):
                    yield digest


def _listed(storage: Storage, folder: str) -> tuple[list[str], list[str]]:
    try:
        return storage.listdir(folder)
    except FileNotFoundError:
        return [], []
