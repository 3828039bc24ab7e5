"""The steps of a run as its page shows them, with what waits and what was left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Self
from uuid import UUID

from django.db.models import Q
from django.urls import reverse

from runs.kernel.slots import REVIEW
from runs.models import Artifact, Run, Step
from runs.pages import words
from runs.pages.rounds import Rounds
from runs.plaintext import first_line, visible
from runs.turns import folding
from runs.turns.projection import plain

_WAITING: Final = "waiting for a person: "
SUMMARY: Final = 400
OPEN_SHOWN: Final = 20
_GOING: Final = frozenset(
    {
        Step.Status.RUNNING,
        Step.Status.QUEUED,
        Step.Status.SENT_BACK,
        Step.Status.RETRY_PENDING,
    }
)
# Kinds of steps that hold others; what they would say is said by the steps in them.
SCOPES: Final = ("graph", "loop")


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
    rounds_text: str
    desc: str
    started_at: datetime | None
    ended_at: datetime | None
    duration_text: str
    bar: Mapping[str, float] | None
    summary: str
    output_text: str
    open: bool
    is_scope: bool
    is_kept: bool = False
    is_answered: bool = False
    request_url: str = ""
    question: str = ""
    skipped_reason: str = ""
    sent_back_to: str = ""
    sent_back_name: str = ""
    sent_back_note: str = ""
    again: Rounds | None = None
    artifacts: list[FileView] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What a page or a frame shows of a run, each table read once.

    `steps` are all of them or those at some places, `waiting` those that ask, oldest first, and
    `files` what is attached with the step it belongs to.
    """

    steps: list[Step]
    waiting: list[Step]
    files: list[tuple[tuple[str, ...], FileView]]

    @classmethod
    def of(
        cls,
        run: Run,
        only: Iterable[Sequence[str]] | None = None,
        files: list[tuple[tuple[str, ...], FileView]] | None = None,
    ) -> Self:
        """Read them; `files` are what is known to be there."""
        places = None if only is None else {tuple(path) for path in only}
        found = run.steps.all()
        if places is not None:
            asks = Q(status=Step.Status.WAITING) & ~Q(request_id="")
            here = Q(path__in=[list(path) for path in places])
            found = found.filter(here if run.is_final else here | asks)
        steps = list(found)
        waiting = [step for step in steps if _asks(step) and not run.is_final]
        if places is not None:
            steps = [step for step in steps if tuple(step.path) in places]
        return cls(
            steps=steps,
            waiting=sorted(waiting, key=lambda step: step.started_at or run.created_at),
            files=artifacts_of(run) if files is None else files,
        )


def _asks(step: Step) -> bool:
    is_waiting = step.status == Step.Status.WAITING and bool(step.request_id)
    return is_waiting and step.kind not in SCOPES


def question_of(step: Step) -> str:
    """The question a waiting step shows, from the step's own row."""
    return first_line(step.summary.removeprefix(_WAITING), 200) or "A question waits."


def step_views(
    run: Run,
    now: datetime,
    rows: Rows | None = None,
    rounds: Mapping[tuple[str, ...], Rounds] | None = None,
    *,
    some: bool = False,
) -> list[StepView]:
    """The steps in order, with bars on one axis that ends now or with the run.

    `some` says that the rows have not all of them.
    """
    rows = Rows.of(run) if rows is None else rows
    steps = rows.steps
    files: dict[tuple[str, ...], list[FileView]] = defaultdict(list)
    for path, file in rows.files:
        files[path].append(file)
    start, total = _axis(run, now)
    ids = {tuple(step.path): f"s{step.position}" for step in steps}
    if some and any(step.sent_back_to or step.path[-1:] == [REVIEW] for step in steps):
        places = run.steps.values_list("path", "position")
        ids = {tuple(path): f"s{position}" for path, position in places}
    scopes = {tuple(step.parent[:-1]) for step in steps if len(step.parent) > 1}
    over = answered(run, steps)
    views = [_step_view(run, step, ids, scopes, over, files, now, start, total) for step in steps]
    for step, view in zip(steps, views, strict=True):
        if is_review(step, ids) and step.status == Step.Status.FAILED and not _raised(step):
            # A review that wants another round is a decision, not an error.
            view.status, view.status_word = Step.Status.SENT_BACK, "rejected"
        _tell_rounds(view, (rounds or {}).get(tuple(step.path)))
    return views


def is_review(step: Step, ids: Container[tuple[str, ...]]) -> bool:
    """The review of a loop stands beside the body; a node that is called so does not."""
    return step.path[-1:] == [REVIEW] and tuple(step.path[:-1]) in ids


def _raised(step: Step) -> bool:
    return bool((step.outcome or {}).get("error"))


def _tell_rounds(view: StepView, rounds: Rounds | None) -> None:
    """Put a loop's round on it, and on whatever goes round again why it does."""
    if rounds is None:
        return
    view.rounds, view.rounds_text = rounds.short, rounds.text
    view.again = rounds
    goes = view.status in _GOING
    view.open = view.open or (goes and bool(rounds.why or rounds.resumes_at))


def _axis(run: Run, now: datetime) -> tuple[datetime, float]:
    start = run.started_at or run.created_at
    return start, max(1.0, ((run.ended_at or now) - start).total_seconds())


def axis_ticks(run: Run, now: datetime) -> list[dict[str, Any]]:
    """Three labels of the time axis."""
    _, total = _axis(run, now)
    return [
        {"x": round(part * 100), "label": words.tick(total * part, total)} for part in (0, 0.5, 1)
    ]


def _step_view(
    run: Run,
    step: Step,
    ids: Mapping[tuple[str, ...], str],
    scopes: set[tuple[str, ...]],
    over: set[tuple[str, ...]],
    files: Mapping[tuple[str, ...], list[FileView]],
    now: datetime,
    start: datetime,
    total: float,
) -> StepView:
    path = tuple(step.path)
    going = step.status in ("running", "waiting")
    end = step.ended_at or ((run.ended_at or now) if going else None)
    bar = None
    if step.started_at is not None and end is not None:
        x = max(0.0, min(99.6, (step.started_at - start).total_seconds() / total * 100))
        width = max(0.4, min(100 - x, (end - step.started_at).total_seconds() / total * 100))
        bar = {"x": round(x, 2), "width": round(width, 2)}
    target = (*path[:-1], step.sent_back_to) if step.sent_back_to else ()
    is_answered = path in over
    waits = step.status == Step.Status.WAITING and not run.is_final and not is_answered
    is_kept = step.status == Step.Status.WAITING and run.is_final
    skipped = step.status == Step.Status.SKIPPED
    is_scope = step.kind in SCOPES or path in scopes
    return StepView(
        path_id=ids[path],
        name=visible(step.name),
        depth=step.depth,
        kind=step.kind,
        status=_status(step, is_kept=is_kept, is_answered=is_answered),
        status_word=_word(step, is_kept=is_kept, is_answered=is_answered),
        attempt=step.attempt,
        rounds=str(step.attempt) if step.attempt > 1 else "",
        rounds_text=f"round {step.attempt}" if step.attempt > 1 else "",
        desc=visible(step.desc),
        started_at=step.started_at,
        ended_at=step.ended_at,
        duration_text=words.length(step.started_at, step.ended_at),
        bar=bar,
        summary="" if waits or is_kept or is_answered or skipped else _summary(step),
        output_text=visible(_output(step)),
        is_kept=is_kept,
        is_answered=is_answered,
        open=not is_scope
        and (waits or is_kept or is_answered or step.status == Step.Status.FAILED),
        is_scope=is_scope,
        request_url="" if is_scope else request_url(run, step),
        question=question_of(step) if waits else "",
        skipped_reason=visible(step.summary.removeprefix("skipped: ")) if skipped else "",
        sent_back_to=ids.get(target, ""),
        sent_back_name=visible(step.sent_back_to),
        sent_back_note=_note(step),
        artifacts=files.get(path, []),
    )


def _status(step: Step, *, is_kept: bool, is_answered: bool) -> str:
    """The tone of the row; an answer that waits for a Resume is paused, not asking any more."""
    if is_kept:
        return Step.Status.CANCELLED
    return "paused" if is_answered else step.status


def _word(step: Step, *, is_kept: bool, is_answered: bool) -> str:
    if is_kept:
        return "question kept"
    if is_answered:
        return "answered"
    if step.status == Step.Status.CANCELLED and step.started_at is not None:
        return "cancelled"
    return words.STEP_WORDS[step.status]


def _summary(step: Step) -> str:
    """What the step said in short; an approval repeats its question, which may hold Markdown."""
    is_short = len(step.summary) <= SUMMARY and "\n" not in step.summary.strip()
    if is_short and step.kind != "approval":
        return visible(step.summary)
    return first_line(step.summary, SUMMARY)


def _note(step: Step) -> str:
    """Why the step sent the work back."""
    revision = (step.outcome or {}).get("revision") or {}
    return visible(str(revision.get("reason") or "")) if step.sent_back_to else ""


def failure_of(run: Run) -> str:
    """What ended the run: the first step that failed, by its name and in its words."""
    return failures_of([run]).get(run.pk, "")


def failures_of(runs: Sequence[Run]) -> dict[UUID, str]:
    """The same for many runs at once; what the run itself said where no step tells more."""
    told = {run.pk: first_line(str((run.outcome or {}).get("summary") or "")) for run in runs}
    over = (Step.Status.FAILED, Step.Status.EXHAUSTED)
    steps = Step.objects.filter(run__in=told, status__in=over, ended_at__isnull=False)
    for step in steps.exclude(kind__in=SCOPES).exclude(summary="").order_by("-ended_at"):
        told[step.run_id] = f"{visible(step.name)}: {first_line(step.summary)}"
    return told


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
    shown = "\n\n".join(text for text in found if text != step.summary)
    is_long = len(step.summary) > SUMMARY or "\n" in step.summary.strip()
    return step.summary if is_long and not shown and step.kind != "approval" else shown


def waiting_of(run: Run, waiting: Iterable[Step]) -> list[dict[str, Any]]:
    """The questions the run waits for, oldest first; those of a stream as its record has them."""
    if run.is_final:
        return []
    if run.kind == Run.Kind.EXTERNAL:
        held = folding.state_at(run.pk, run.last_seq).callbacks.requests.values()
        asked = [one.request for one in held if one.is_live]
        return [
            {
                "text": first_line(request.decision_text, 200) or "A question waits.",
                "url": reverse("gates:of-digest", args=[run.pk, request.digest]),
                "since": None,
            }
            for request in asked[:OPEN_SHOWN]
        ]
    found = list(waiting)
    over = answered(run, found)
    return [
        {
            "text": question_of(step),
            "url": request_url(run, step),
            "since": step.started_at,
        }
        for step in found
        if tuple(step.path) not in over
    ]


def answered(run: Run, steps: Iterable[Step]) -> set[tuple[str, ...]]:
    """Where the answer is in already and only waits for somebody to resume the run."""
    waiting = [step for step in steps if step.status == Step.Status.WAITING and step.request_id]
    if not waiting or run.is_final:
        return set()
    held = folding.state_at(run.pk, run.last_seq).callbacks.requests
    live = {plain(name, 600) for name, one in held.items() if one.is_live}
    return {tuple(step.path) for step in waiting if step.request_id not in live}


def artifacts_of(run: Run) -> list[tuple[tuple[str, ...], FileView]]:
    """The run's files with the step each belongs to; a name stored again shows its last bytes."""
    latest: dict[tuple[tuple[str, ...], str], Artifact] = {}
    for artifact in run.artifacts.all():
        latest[(tuple(artifact.step_path), artifact.name)] = artifact
    return [(path, file_view(run, artifact)) for (path, _), artifact in latest.items()]


def file_view(run: Run, artifact: Artifact) -> FileView:
    """Show an artifact as a download."""
    return FileView(
        name=visible(artifact.name),
        digest=artifact.digest,
        short=artifact.digest[7:15],
        size=words.size(artifact.size),
        url=reverse("runs:artifact", args=[run.pk, artifact.digest]),
        media_type=visible(artifact.media_type),
    )
