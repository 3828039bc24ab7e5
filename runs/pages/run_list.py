"""The list of runs, newest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from runs import admission
from runs.access import visible_runs
from runs.models import Run, Step
from runs.pages import step_views, words
from runs.pages.step_views import question_of
from runs.people.actors import actor_labels
from runs.people.principals import Principal
from runs.plaintext import visible
from runs.queries import id_range, is_id_prefix

PAGE: Final = 50
TABS: Final = {
    "all": ("All", Q()),
    "waiting": ("Needs a person", Q(status__in=["waiting", "paused"])),
    "going": ("Going", Q(status__in=["queued", "running", "retry_pending"])),
    "failed": ("Failed", Q(status__in=["failed", "exhausted"])),
    "finished": ("Finished", Q(status__in=["passed", "cancelled"])),
    "archived": ("Archived", Q(archived_at__isnull=False)),
}
# What a tab says that has no run.
EMPTY: Final = {
    "waiting": "No run waits for a person.",
    "going": "No run is under way.",
    "failed": "No run failed.",
    "finished": "No run has finished yet.",
    "archived": "No run is in the archive. Those that ended long ago are moved there by whoever "
    "looks after this installation.",
}

_FAILED: Final = (Run.Status.FAILED, Run.Status.EXHAUSTED)


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One line of the list of runs."""

    id: str
    url: str
    short: str
    workflow: str
    title: str
    status: str
    status_word: str
    overridden: bool
    archived_at: datetime | None
    needs_person: bool
    waiting_text: str
    wakes_at: datetime | None
    done: int
    total: int
    last_event: str
    starter: str
    created_at: datetime
    duration: str
    about: str


def run_rows(
    who: Principal, *, tab: str = "all", q: str = "", workflow: str = "", before: str = ""
) -> tuple[list[RunRow], str]:
    """A page of runs, newest first, and the cursor of the next page (empty at the end)."""
    runs = visible_runs(who).filter(TABS[tab][1] if tab in TABS else Q())
    if workflow:
        runs = runs.filter(workflow=workflow)
    if q:
        match = Q(workflow__icontains=q) | Q(title__icontains=q) | Q(stream__icontains=q)
        if is_id_prefix(q):
            match |= id_range(q)
        runs = runs.filter(match)
    edge = visible_runs(who).filter(pk=before).first() if _is_uuid(before) else None
    if edge is not None:
        runs = runs.filter(
            Q(created_at__lt=edge.created_at) | Q(created_at=edge.created_at, pk__lt=edge.pk)
        )
    found = list(runs.order_by("-created_at", "-pk")[: PAGE + 1])
    page = found[:PAGE]
    labels = actor_labels(run.started_by for run in page)
    waiting = _questions(run for run in page if run.status == Run.Status.WAITING)
    failed = step_views.failures_of([run for run in page if run.status in _FAILED])
    queued = admission.places_of(page)
    rows = [
        _run_row(run, labels, waiting, failed, admission.in_words(queued.get(run.pk, ())))
        for run in page
    ]
    return rows, str(page[-1].pk) if len(found) > PAGE else ""


def _run_row(
    run: Run,
    labels: Mapping[str, str],
    waiting: Mapping[Any, list[str]],
    failed: Mapping[UUID, str],
    queued: str,
) -> RunRow:
    stopped = run.status == Run.Status.PAUSED
    text = run.held_reason or "Stopped; it needs a Resume." if stopped else ""
    return RunRow(
        id=str(run.pk),
        url=run.get_absolute_url(),
        short=run.short,
        workflow=visible(run.workflow or run.stream),
        title=words.title(run),
        status=run.status,
        status_word=words.RUN_WORDS[run.status],
        overridden=run.overridden,
        archived_at=run.archived_at,
        needs_person=run.status in (Run.Status.WAITING, Run.Status.PAUSED),
        waiting_text=visible(text) or "; ".join(waiting.get(run.pk, [])),
        wakes_at=run.wake_at if run.status == Run.Status.RETRY_PENDING else None,
        done=run.done_count,
        total=0 if run.is_final and run.status != Run.Status.PASSED else run.total_count,
        last_event=visible(queued) or failed.get(run.pk, ""),
        starter=visible(labels[run.started_by]),
        created_at=run.created_at,
        duration=words.length(run.started_at, run.ended_at or timezone.now()),
        about=words.about(run.params),
    )


def _questions(runs: Iterable[Run]) -> Mapping[Any, list[str]]:
    """The question a waiting step shows, from the step's own row."""
    found: dict[Any, list[str]] = defaultdict(list)
    keys = [run.pk for run in runs]
    if keys:
        waiting = Step.objects.filter(run__in=keys, status=Step.Status.WAITING)
        # What holds others waits with the step in it that asks.
        for step in waiting.exclude(kind__in=step_views.SCOPES).exclude(request_id=""):
            found[step.run_id].append(question_of(step))
    return found


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
