"""Which repositories a release may be made of: what `OBVERSA_RELEASE_ROOTS` names, and no other.

A root is a folder of this machine, or the beginning of an address: `/srv/git`,
`https://git.example.org/team/`, `ssh://git@git.example.org/`. Several stand with commas between.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

VARIABLE: Final = "OBVERSA_RELEASE_ROOTS"
# Whatever the worker's user may read here, and what is told apart from others by its certificate
# or host key.
DEFAULT: Final = ("/", "https://", "ssh://")


def roots() -> tuple[str, ...]:
    """The roots in force."""
    named = os.environ.get(VARIABLE, "")
    return tuple(root for part in named.split(",") if (root := part.strip())) or DEFAULT


def is_restricted() -> bool:
    """Whether somebody has named the roots."""
    return roots() != DEFAULT


def may_release(repository: str) -> bool:
    """Whether a checked path or address lies below one of the roots."""
    if "://" not in repository:
        return any(_is_below(repository, root) for root in roots() if "://" not in root)
    if repository.lower().startswith("file:"):
        return may_release(unquote(urlsplit(repository).path))
    return any(_begins_with(repository, root) for root in roots() if "://" in root)


def _is_below(path: str, root: str) -> bool:
    """Links are followed first: a link within a root that leads out of it is outside."""
    return Path(path).resolve().is_relative_to(Path(root).expanduser().resolve())


def _begins_with(repository: str, root: str) -> bool:
    given, allowed = urlsplit(repository), urlsplit(root)
    if given.scheme != allowed.scheme:
        return False
    if not allowed.netloc:
        return True  # any host over this transport
    if (given.hostname, given.port) != (allowed.hostname, allowed.port):
        return False
    if allowed.username is not None and given.username != allowed.username:
        return False
    folder = [part for part in unquote(allowed.path).split("/") if part]
    parts = [part for part in unquote(given.path).split("/") if part]
    return parts[: len(folder)] == folder and not {".", ".."} & set(parts)
