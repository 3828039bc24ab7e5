"""What the pages of runs show, as plain data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.urls import reverse

from runs import folding, words
from runs.access import visible_runs, visible_workflows
from runs.actors import actor_labels
from runs.kernel.events import Event
from runs.models import Artifact, Run, Step, Workflow
from runs.models import Event as EventRow
from runs.plaintext import first_line
from runs.principals import Principal

PAGE: Final = 50
EVENTS_SHOWN: Final = 300
TABS: Final = {
    "all": ("All", Q()),
    "waiting": ("Need a person", Q(status__in=["waiting", "paused"])),
    "going": ("Going", Q(status__in=["queued", "running", "retry_pending"])),
    "failed": ("Failed", Q(status__in=["failed", "exhausted"])),
    "finished": ("Finished", Q(status__in=["passed", "cancelled"])),
}


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
    needs_person: bool
    waiting_text: str
    done: int
    total: int
    last_event: str
    starter: str
    created_at: datetime
    duration: str


@dataclass(frozen=True, kw_only=True)
class EventView:
    """One line of the record."""

    seq: int
    kind: str
    kind_group: str
    text: str
    at: datetime
    path_text: str


@dataclass(frozen=True, kw_only=True)
class FileView:
    """One artifact to download."""

    name: str
    digest: str
    short: str
    size: str
    url: str
    media_type: str


@dataclass(kw_only=True)
class StepView:
    """One step of the list: its state, its bar on the common axis, what it left behind."""

    path_id: str
    name: str
    depth: int
    kind: str
    status: str
    status_word: str
    attempt: int
    rounds: str
    desc: str
    started_at: datetime | None
    ended_at: datetime | None
    duration_text: str
    bar: Mapping[str, float] | None
    summary: str
    output_text: str
    open: bool
    is_scope: bool
    request_url: str = ""
    question: str = ""
    skipped_reason: str = ""
    sent_back_to: str = ""
    sent_back_name: str = ""
    sent_back_note: str = ""
    artifacts: list[FileView] = field(default_factory=list)


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
    if before and (edge := Run.objects.filter(pk=before).first() if _is_uuid(before) else None):
        runs = runs.filter(
            Q(created_at__lt=edge.created_at) | Q(created_at=edge.created_at, pk__lt=edge.pk)
        )
    found = list(runs.order_by("-created_at", "-pk")[: PAGE + 1])
    page = found[:PAGE]
    labels = actor_labels(run.started_by for run in page)
    waiting = _questions(run for run in page if run.status == Run.Status.WAITING)
    rows = [_run_row(run, labels, waiting) for run in page]
    return rows, str(page[-1].pk) if len(found) > PAGE else ""


def _run_row(run: Run, labels: Mapping[str, str], waiting: Mapping[Any, list[str]]) -> RunRow:
    stopped = run.status == Run.Status.PAUSED
    text = run.held_reason or "Stopped; it needs a Resume." if stopped else ""
    outcome = run.outcome or {}
    return RunRow(
        id=str(run.pk),
        url=run.get_absolute_url(),
        short=run.short,
        workflow=run.workflow or run.stream,
        title=run.title or run.workflow or f"Questions of {run.stream}",
        status=run.status,
        status_word=words.RUN_WORDS[run.status],
        needs_person=run.status in (Run.Status.WAITING, Run.Status.PAUSED),
        waiting_text=text or "; ".join(waiting.get(run.pk, [])),
        done=run.done_count,
        total=run.total_count,
        last_event=str(outcome.get("summary") or ""),
        starter=labels[run.started_by],
        created_at=run.created_at,
        duration=words.length(run.started_at, run.ended_at or run.changed_at),
    )


def _questions(runs: Iterable[Run]) -> Mapping[Any, list[str]]:
    """The question a waiting step shows, from the step's own row."""
    found: dict[Any, list[str]] = defaultdict(list)
    keys = [run.pk for run in runs]
    if keys:
        for step in Step.objects.filter(run__in=keys, status=Step.Status.WAITING):
            found[step.run_id].append(_first_line(step.summary))
    return found


def _first_line(summary: str) -> str:
    return first_line(summary.removeprefix("waiting for a person: "), 200) or "A question waits."


def step_views(
    run: Run, now: datetime, only: Iterable[Sequence[str]] | None = None
) -> list[StepView]:
    """The steps in order, with bars on one axis that ends now or with the run."""
    steps = list(
        run.steps.all() if only is None else run.steps.filter(path__in=[list(p) for p in only])
    )
    files: dict[tuple[str, ...], list[FileView]] = defaultdict(list)
    for artifact in artifacts_of(run):
        files[artifact[0]].append(artifact[1])
    start, total = _axis(run, now)
    ids = {tuple(step.path): f"s{step.position}" for step in steps}
    if only is not None and any(step.sent_back_to for step in steps):
        places = run.steps.values_list("path", "position")
        ids = {tuple(path): f"s{position}" for path, position in places}
    scopes = {tuple(step.parent[:-1]) for step in steps if len(step.parent) > 1}
    return [_step_view(run, step, ids, scopes, files, now, start, total) for step in steps]


def _axis(run: Run, now: datetime) -> tuple[datetime, float]:
    start = run.started_at or run.created_at
    return start, max(1.0, ((run.ended_at or now) - start).total_seconds())


def axis_ticks(run: Run, now: datetime) -> list[dict[str, Any]]:
    """Three labels of the time axis."""
    _, total = _axis(run, now)
    return [
        {"x": round(part * 100), "label": words.span(total * part) if part else "0"}
        for part in (0, 0.5, 1)
    ]


def _step_view(
    run: Run,
    step: Step,
    ids: Mapping[tuple[str, ...], str],
    scopes: set[tuple[str, ...]],
    files: Mapping[tuple[str, ...], list[FileView]],
    now: datetime,
    start: datetime,
    total: float,
) -> StepView:
    path = tuple(step.path)
    end = step.ended_at or (now if step.status in ("running", "waiting") else None)
    bar = None
    if step.started_at is not None and end is not None:
        x = max(0.0, min(99.6, (step.started_at - start).total_seconds() / total * 100))
        width = max(0.4, min(100 - x, (end - step.started_at).total_seconds() / total * 100))
        bar = {"x": round(x, 2), "width": round(width, 2)}
    target = (*path[:-1], step.sent_back_to) if step.sent_back_to else ()
    waits = step.status == Step.Status.WAITING
    skipped = step.status == Step.Status.SKIPPED
    return StepView(
        path_id=ids[path],
        name=step.name,
        depth=step.depth,
        kind=step.kind,
        status=step.status,
        status_word=words.STEP_WORDS[step.status],
        attempt=step.attempt,
        rounds=str(step.attempt) if step.attempt > 1 else "",
        desc=step.desc,
        started_at=step.started_at,
        ended_at=step.ended_at,
        duration_text=words.length(step.started_at, step.ended_at),
        bar=bar,
        summary="" if waits or skipped else step.summary,
        output_text=_output(step),
        open=waits or step.status == Step.Status.FAILED,
        is_scope=step.kind == "graph" or path in scopes,
        request_url=request_url(run, step),
        question=_first_line(step.summary) if waits else "",
        skipped_reason=step.summary.removeprefix("skipped: ") if skipped else "",
        sent_back_to=ids.get(target, ""),
        sent_back_name=step.sent_back_to,
        artifacts=files.get(path, []),
    )


def request_url(run: Run, step: Step) -> str:
    """Where the step's question is answered; the address finds the newest asking."""
    if not step.request_id:
        return ""
    return reverse("gates:of-step", args=[run.pk, step.position])


def _output(step: Step) -> str:
    """The output a command or check left, for reading under its step."""
    outcome = step.outcome or {}
    revision = outcome.get("revision") or {}
    found = [str(item.get("evidence", "")) for item in revision.get("findings", ())]
    data = outcome.get("data")
    if step.kind in ("command", "gate") and isinstance(data, str):
        return data
    if isinstance(data, Mapping) and isinstance(data.get("output"), str):
        return str(data["output"])
    return "\n\n".join(text for text in found if text != step.summary)


def waiting_of(run: Run) -> list[dict[str, Any]]:
    """The questions the run waits for, oldest first."""
    steps = run.steps.filter(status=Step.Status.WAITING).exclude(request_id="")
    return [
        {
            "text": _first_line(step.summary),
            "url": request_url(run, step),
            "since": step.started_at,
        }
        for step in steps.order_by("started_at")
    ]


def artifacts_of(run: Run) -> list[tuple[tuple[str, ...], FileView]]:
    """The run's files with the step each belongs to; a name stored again shows its last bytes."""
    latest: dict[tuple[tuple[str, ...], str], Artifact] = {}
    for artifact in run.artifacts.all():
        latest[(tuple(artifact.step_path), artifact.name)] = artifact
    return [(path, file_view(run, artifact)) for (path, _), artifact in latest.items()]


def file_view(run: Run, artifact: Artifact) -> FileView:
    """Show an artifact as a download."""
    return FileView(
        name=artifact.name,
        digest=artifact.digest,
        short=artifact.digest[7:15],
        size=words.size(artifact.size),
        url=reverse("runs:artifact", args=[run.pk, artifact.digest]),
        media_type=artifact.media_type,
    )


def events_after(run_id: Any, after: int, limit: int) -> list[Event]:
    """Return up to `limit` events after the number `after`, in order."""
    rows = EventRow.objects.filter(run_id=run_id, seq__gt=after).order_by("seq")[:limit]
    return [folding.to_event(row) for row in rows]


def last_events(run: Run, count: int = EVENTS_SHOWN) -> list[Event]:
    """Return the end of the record."""
    return events_after(run.pk, max(0, run.last_seq - count), count)


def event_views(events: list[Event]) -> list[EventView]:
    """The events as lines, with one query for all names."""
    labels = actor_labels(event.actor for event in events)
    return [
        EventView(
            seq=event.seq,
            kind=event.kind,
            kind_group=words.kind_group(event),
            text=words.event_text(event, labels.get(event.actor, event.actor))[:400],
            at=datetime.fromtimestamp(event.ts / 1000).astimezone(),
            path_text=" > ".join(event.path[1:]),
        )
        for event in events
    ]


def graph_of(run: Run, steps: list[StepView]) -> dict[str, Any] | None:
    """Nodes, groups and edges for the drawn graph, from the rows of the steps."""
    rows = {f"s{step.position}": step for step in run.steps.all()}
    if len(rows) < 2:
        return None
    ids = {tuple(step.path): key for key, step in rows.items()}
    owner = {path_id: ids.get(tuple(row.parent[:-1])) for path_id, row in rows.items()}
    groups = [
        {"id": view.path_id, "label": view.name, "parent": owner[view.path_id]}
        for view in steps
        if rows[view.path_id].kind == "graph"
    ]
    nodes = [
        {
            "id": view.path_id,
            "label": view.name,
            "status": view.status,
            "word": view.status_word,
            "duration": view.duration_text,
            "rounds": view.rounds,
            "group": owner[view.path_id],
        }
        for view in steps
        if rows[view.path_id].kind != "graph"
    ]
    edges = [
        {"from": ids[(*row.parent, need)], "to": key, "kind": "needs", "count": 1}
        for key, row in rows.items()
        for need in row.needs
    ]
    back = [
        {"from": view.path_id, "to": view.sent_back_to, "kind": "back", "count": 1}
        for view in steps
        if view.sent_back_to
    ]
    return {"nodes": nodes, "groups": groups, "edges": edges + back}


def workflow_rows(who: Principal) -> list[dict[str, Any]]:
    """The catalogue with each workflow's last runs."""
    offers: list[Workflow] = list(visible_workflows(who).order_by("title", "name"))
    latest: dict[str, list[Run]] = defaultdict(list)
    for offer in offers:
        runs = visible_runs(who).filter(workflow=offer.name)
        latest[offer.name] = list(runs.order_by("-created_at")[:3])
    return [
        {
            "name": offer.name,
            "title": offer.title,
            "description": offer.description,
            "error": offer.error,
            "start_url": "" if offer.error else reverse("runs:start", args=[offer.name]),
            "last_runs": [
                {
                    "url": run.get_absolute_url(),
                    "status": run.status,
                    "status_word": words.RUN_WORDS[run.status],
                    "short": run.short,
                    "created_at": run.created_at,
                }
                for run in latest[offer.name]
            ],
        }
        for offer in offers
    ]


def is_id_prefix(text: str) -> bool:
    """Tell whether the text may be the beginning of a run's id."""
    return 4 <= len(text) <= 36 and all(mark in "0123456789abcdef-" for mark in text.lower())


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def id_range(prefix: str) -> Q:
    """Runs whose id begins with these digits, as a range that the primary key's index serves."""
    digits = prefix.lower().replace("-", "")[:32]
    return Q(pk__gte=UUID(digits.ljust(32, "0")), pk__lte=UUID(digits.ljust(32, "f")))
