"""How much a step, a run and all runs together may keep; equal bytes count once in each."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet, Sum

from runs.artifacts import store
from runs.artifacts.store import ArtifactTooLarge
from runs.kernel.events import Path as StepPath
from runs.models import Artifact
from runs.plaintext import visible

# All runs together are summed up so seldom: it reads a row for every file there is.
SUMMED_EVERY_SECONDS: Final = 60.0


class QuotaSpent(ArtifactTooLarge):
    """What is kept already leaves no room for these bytes."""

    code = "artifact-quota"


class _InAll:
    """The bytes of all files, as they were summed up last, with what this process added since."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._at, self._sum = float("-inf"), 0

    def bytes(self) -> int:
        if time.monotonic() - self._at > SUMMED_EVERY_SECONDS:
            self._sum, self._at = _sum(Artifact.objects.all()), time.monotonic()
        return self._sum

    def add(self, size: int) -> None:
        self._sum += size


in_all: Final = _InAll()


def keep(run_id: UUID, path: StepPath, name: str, content: bytes | Path) -> tuple[str, int]:
    """Store the bytes of a step's file; returns digest and size.

    Raises ArtifactTooLarge in words for whoever wrote the step; nothing is kept then.
    """

    def admit(digest: str, size: int) -> None:
        need_room(run_id, path, name, digest, size)

    most = settings.OBVERSA_MAX_FILE_BYTES
    try:
        return store.keep(content, at_most=most or None, admit=admit, is_named=_is_named)
    except QuotaSpent:
        raise
    except ArtifactTooLarge as refusal:
        raise _refused(ArtifactTooLarge, name, "one file", most) from refusal


def need_room(run_id: UUID, path: StepPath, name: str, digest: str, size: int) -> None:
    """Raise QuotaSpent when the file does not fit beside the others.

    Asked before the bytes get their name, and once more under the run's lock, where it is exact
    for the run and its steps.
    """
    mine = Artifact.objects.filter(run_id=run_id)
    step = mine.filter(step_path=list(path))
    for rows, most, text in (
        (step, settings.OBVERSA_MAX_FILE_BYTES_PER_STEP, "the files of one step"),
        (mine, settings.OBVERSA_MAX_FILE_BYTES_PER_RUN, "the files of one run"),
    ):
        if most and not rows.filter(digest=digest).exists() and _sum(rows) + size > most:
            raise _refused(QuotaSpent, name, text, most)
    most = settings.OBVERSA_MAX_FILE_BYTES_IN_ALL
    if most and not _is_named(digest) and in_all.bytes() + size > most:
        raise _refused(QuotaSpent, name, "the files of all runs", most)


def _refused(refusal: type[ArtifactTooLarge], name: str, what: str, most: int) -> ArtifactTooLarge:
    return refusal(f"{visible(name)[:100]} is not kept: {what} may have {most:,} bytes.")


def _sum(rows: QuerySet[Artifact]) -> int:
    """The bytes of these rows, each digest once."""
    once = rows.order_by().values("digest", "size").distinct()
    return int(once.aggregate(sum=Sum("size"))["sum"] or 0)


def _is_named(digest: str) -> bool:
    return Artifact.objects.filter(digest=digest).exists()
