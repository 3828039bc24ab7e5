"""The page of a run whose record is in the archive: what remains of it here, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runs.models import Run
from runs.pages import step_views, words
from runs.people.actors import actor_label
from runs.people.principals import Principal
from runs.plaintext import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """A question of an archived run, with the address of its receipt where it was answered."""

    gate: str
    status: str
    at: datetime | None
    receipt_url: str


Find = Callable[[Principal, Run], Sequence[KeptAnswer]]
_finds: list[Find] = []


def questions_from(find: Find) -> None:
    """Let another app say which questions of the run this person may see."""
    if find not in _finds:
        _finds.append(find)


def archived_page(who: Principal, run: Run) -> dict[str, Any]:
    """Everything templates/runs/archived.html shows."""
    return {
        "run": {
            "id": str(run.pk),
            "short": run.short,
            "workflow": visible(run.workflow),
            "title": words.title(run),
            "status": run.status,
            "status_word": words.RUN_WORDS[run.status],
            "overridden": run.overridden,
            "started_by": visible(actor_label(run.started_by)),
            "created_at": run.created_at,
            "ended_at": run.ended_at,
            "lasted": words.length(run.started_at, run.ended_at),
            "archived_at": run.archived_at,
            "events": run.last_seq,
            "file": run.archive_name,
            "size": words.size(run.archive_size or 0),
            "digest": run.archive_digest,
        },
        "questions": [one for find in _finds for one in find(who, run)],
        "artifacts": [view for _, view in step_views.artifacts_of(run)],
    }
