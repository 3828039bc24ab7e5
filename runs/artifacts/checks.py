"""Whether every file that a row names is in its store, and whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runs.artifacts import store
from runs.artifacts.store import ArtifactChanged, ArtifactMissing
from runs.models import Artifact, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One digest whose bytes are missing or changed, and whose they are."""

    digest: str
    what: str
    whose: str


@dataclass(slots=True)
class Checked:
    """How much was read, and what was wrong with it."""

    files: int = 0
    bytes: int = 0
    faults: int = 0


def check(told: Checked) -> Iterator[Fault]:
    """Read every file to its end; what is wrong comes out as it is found."""
    rows = Artifact.objects.order_by("digest", "pk").values_list("digest", "size", "name", "run")
    last = ""
    for digest, size, name, run in rows.iterator():
        if digest != last:
            last = digest
            yield from _check(told, digest, size, store.ARTIFACTS, f"{name} of run {run}")
    for gone in Run.objects.exclude(archived_at=None).order_by("pk").iterator():
        whose = f"the record of run {gone.pk}"
        yield from _check(told, gone.archive_digest, gone.archive_size, store.ARCHIVE, whose)


def _check(told: Checked, digest: str, size: int | None, alias: str, whose: str) -> Iterator[Fault]:
    told.files += 1
    told.bytes += size or 0
    try:
        store.need_whole(digest, size, alias=alias)
    except (ArtifactMissing, ArtifactChanged) as error:
        told.faults += 1
        what = "missing" if isinstance(error, ArtifactMissing) else "changed"
        yield Fault(digest=digest, what=what, whose=whose)
