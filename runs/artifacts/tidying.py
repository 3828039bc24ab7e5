"""What lies in a store for nothing: halves of files, and bytes that no row names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Final

from django.utils import timezone

from runs.artifacts import drafts, store
from runs.models import Artifact, Run

# A file is written before the event that names it; nothing takes as long as this in between.
KEPT_SECONDS: Final = 24 * 60 * 60.0
_AT_ONCE: Final = 500
ALIASES: Final = (store.ARTIFACTS, store.ARCHIVE)


def tidy(older_than_seconds: float = KEPT_SECONDS) -> int:
    """Remove what was left behind a day ago; returns how many files that were."""
    removed = 0
    for alias in places():
        removed += drafts.clean(store.of(alias), older_than_seconds)
        for digest in unnamed(store.digests(alias)):
            removed += _removed(digest, alias, older_than_seconds)
    return removed


def places() -> list[str]:
    """The stores that are different ones."""
    same = store.of(store.ARCHIVE) is store.of(store.ARTIFACTS)
    return [store.ARTIFACTS] if same else list(ALIASES)


def unnamed(digests: Iterable[str]) -> Iterator[str]:
    """Those digests that neither a file of a run nor the archive of one has."""
    left = iter(digests)
    while some := list(islice(left, _AT_ONCE)):
        named = set(Artifact.objects.filter(digest__in=some).values_list("digest", flat=True))
        named |= set(
            Run.objects.filter(archive_digest__in=some).values_list("archive_digest", flat=True)
        )
        yield from (digest for digest in some if digest not in named)


def _removed(digest: str, alias: str, older_than_seconds: float) -> int:
    storage, name = store.of(alias), store.name_of(digest)
    before = timezone.now() - timedelta(seconds=older_than_seconds)
    try:
        if storage.get_modified_time(name) > before:
            return 0
    except FileNotFoundError:
        return 0
    # Whoever wrote it anew since the listing has named it by now, or made it young again.
    if not list(unnamed([digest])):
        return 0
    storage.delete(name)
    return 1
