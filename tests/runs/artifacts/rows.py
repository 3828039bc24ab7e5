"""Files of runs, kept and named as a step would."""

from __future__ import annotations

from django.utils import timezone

from runs.artifacts import store
from runs.models import Artifact, Run


def named(run: Run, content: bytes, name: str = "a.txt", step: str = "build") -> str:
    """Keep the bytes and name them in a row of the run; returns the digest."""
    digest, size = store.keep(content)
    Artifact.objects.create(
        run=run,
        digest=digest,
        name=name,
        media_type="text/plain",
        size=size,
        step_path=["release", step],
        seq=1_000 + Artifact.objects.filter(run=run).count(),
        created_at=timezone.now(),
    )
    return digest
