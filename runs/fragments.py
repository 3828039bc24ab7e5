"""The parts of the run page, for the page itself and for the frames that keep it live."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from runs import access, admission, queries, reruns
from runs.kernel.events import Event, EventKind, Path
from runs.models import Run, Step
from runs.pages import event_lines, round_lines, rounds, run_graph, step_views, words
from runs.people.actors import actor_label, actor_labels
from runs.people.principals import Principal
from runs.plaintext import visible
from runs.turns import folding, spending


def fresh_key() -> str:
    """A key that lets a form's second press find the run of the first."""
    return secrets.token_urlsafe(16)


def run_page(who: Principal, run: Run, before: int | None = None) -> dict[str, Any]:
    """Everything templates/runs/run.html shows."""
    page = run_parts(run)
    events = (
        queries.last_events(run, queries.EVENTS_SHOWN)
        if before is None
        else queries.events_after(
            run.pk, max(0, before - 1 - queries.EVENTS_SHOWN), min(before - 1, queries.EVENTS_SHOWN)
        )
    )
    first = events[0].seq if events else 0
    return page | {
        "run": page["run"] | actions(who, run),
        # An axis needs something on it: a run in a line has waited, and done nothing yet.
        "ticks": step_views.axis_ticks(run, timezone.now())
        if any(step.started_at for step in page["steps"])
        else [],
        "graph_json": run_graph.graph_of(run, page["steps"]),
        "events": event_lines.event_views(events, folding.places_of(run.definition_id)),
        "earlier_url": f"{run.get_absolute_url()}?before={first}" if first > 1 else "",
        "last_seq": run.last_seq,
        "ws_url": f"/ws/runs/{run.pk}/" if before is None else "",
    }


def run_parts(run: Run) -> dict[str, Any]:
    """What changes while a run goes: its facts, what it waits for, its steps and files."""
    rows = step_views.Rows.of(run)
    found = rounds.rounds_of_run(run)
    steps = step_views.step_views(run, timezone.now(), rows, found)
    return _parts(run, rows, found, steps, actor_label(run.started_by))


def _parts(
    run: Run,
    rows: step_views.Rows,
    found: Mapping[Path, rounds.Rounds],
    steps: list[step_views.StepView],
    started_by: str,
) -> dict[str, Any]:
    waiting = step_views.waiting_of(run, rows.waiting)
    return {
        "run": _facts(run, len(waiting), started_by) | again_of(run, found.get(())),
        "waiting": waiting,
        "steps": steps,
        "artifacts": [view for _, view in rows.files],
    }


def _facts(run: Run, waiting: int, started_by: str) -> dict[str, Any]:
    word = words.RUN_WORDS[run.status]
    if run.status == Run.Status.WAITING and waiting:
        word = f"waits for {waiting} {'answer' if waiting == 1 else 'answers'}"
    if run.status == Run.Status.RUNNING and run.cancel_requested_at is not None:
        word = "being cancelled"
    failed = run.status in (Run.Status.FAILED, Run.Status.EXHAUSTED)
    spent, counted = spending.told(run)
    return {
        "id": str(run.pk),
        "short": run.short,
        "workflow": visible(run.workflow or run.stream),
        "title": words.title(run),
        "version": (run.definition_id or "")[:8],
        "status": run.status,
        "is_stream": run.kind == Run.Kind.EXTERNAL,
        "status_word": word,
        "overridden": run.overridden,
        "started_by": visible(started_by),
        "again_of_url": None
        if run.rerun_of_id is None
        else reverse("runs:run", args=[run.rerun_of_id]),
        "again_of": "" if run.rerun_of_id is None else run.rerun_of_id.hex[:8],
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "elapsed": words.length(run.started_at, run.ended_at or timezone.now()),
        "done": run.done_count,
        "spent": visible(spent),
        "spent_on": counted,
        "total": 0 if run.is_final and run.status != Run.Status.PASSED else run.total_count,
        "params_json": run.params,
        "queued": visible(admission.in_words(admission.places_of([run]).get(run.pk, ()))),
        "priority": run.priority,
        "reason": visible(run.held_reason) or _why_stopped(run, waiting, failed=failed),
        "about": words.about(run.params),
    }


def again_of(run: Run, whole: rounds.Rounds | None) -> dict[str, Any]:
    """The round of a run that is a loop, and when and why a run tries again by itself."""
    waits = run.status == Run.Status.RETRY_PENDING
    last = queries.last_of_kind(run, round_lines.RETRY) if waits else None
    return {
        "rounds_text": "" if whole is None else whole.text,
        "again": None if run.is_final else whole,
        "retry_text": "" if last is None else visible(round_lines.failed_attempt(last.fields)),
        "wakes_at": run.wake_at if waits else None,
    }


def _why_stopped(run: Run, waiting: int, *, failed: bool) -> str:
    """What ended the run, or what it takes to go on."""
    if failed:
        return step_views.failure_of(run)
    if run.status != Run.Status.PAUSED:
        return ""
    return "It goes on when somebody resumes it." if not waiting else "It waits for answers first."


def _failed_at(run: Run) -> str:
    """The step of the outermost graph that a failed run can begin at when it runs again."""
    if run.status not in (Run.Status.FAILED, Run.Status.EXHAUSTED):
        return ""
    over = (Step.Status.FAILED, Step.Status.EXHAUSTED)
    failed = run.steps.filter(depth=0, status__in=over).order_by("position").first()
    is_node = failed is not None and len(failed.path) == 2
    return failed.name if failed is not None and is_node else ""


def actions(who: Principal, run: Run) -> dict[str, Any]:
    """Which buttons this caller has on the run."""
    mine = access.may_operate(who, run) and run.kind == Run.Kind.WORKFLOW
    stoppable = not run.is_final and run.cancel_requested_at is None
    can_rerun = reruns.may_rerun(run) and access.may_start_again(who, run)
    return {
        "can_cancel": mine and stoppable,
        "can_resume": mine and run.status in (Run.Status.PAUSED, Run.Status.CANCELLED),
        "can_rerun": can_rerun,
        "can_start_over": can_rerun and bool(run.held_reason),
        "rerun_from": visible(_failed_at(run)) if can_rerun else "",
        "rerun_once": run.reruns.count() if can_rerun else 0,
        "can_retry": mine and run.status == Run.Status.RETRY_PENDING,
        "rerun_url": reverse("runs:run-rerun", args=[run.pk]),
        "retry_url": reverse("runs:run-retry", args=[run.pk]),
        "cancel_url": reverse("runs:run-cancel", args=[run.pk]),
        "resume_url": reverse("runs:run-resume", args=[run.pk]),
    }


class Shown:
    """What the pages that follow one tail have by now: a frame says only what differs from it."""

    def __init__(self, parts: dict[str, str] | None = None) -> None:
        """`parts` holds the html of the parts by their ids; it is kept up to date."""
        self._parts = {} if parts is None else parts
        self._files: list[tuple[Path, step_views.FileView]] | None = None
        self._names: dict[str, str] = {}

    def forget_names(self) -> None:
        """Ask again what people are called."""
        self._names = {}

    def frame(self, run: Run, events: list[Event]) -> str:
        """The frame that brings a page from its last event to the end of `events`.

        Only the steps that the events touch are read, and files only when there are new ones.
        """
        spending.saw(run.pk, events)
        state = folding.state_at(run.pk, run.last_seq, news=events)
        places = folding.places_of(run.definition_id)
        if any(event.kind == EventKind.ARTIFACT for event in events):
            self._files = None
        rows = step_views.Rows.of(run, _touched(events, places), self._files)
        self._files = rows.files
        found = (
            {}
            if run.definition_id is None
            else rounds.rounds_of(state, folding.shape_of(run.definition_id))
        )
        steps = step_views.step_views(run, timezone.now(), rows, found, some=True)
        names = self._names_of({run.started_by, *(event.actor for event in events)})
        parts = _parts(run, rows, found, steps, names[run.started_by])
        lines = "".join(
            render_to_string("runs/_event.html", {"event": view})
            for view in event_lines.event_views(events, places, names)
        )
        out = [_partial("run-events", "beforeend", lines)]
        changed = {}
        for name, template in _CHANGING.items():
            html = render_to_string(template, parts)
            if self._parts.get(name) != html:
                changed[name] = html
                out.append(_partial(name, "outerHTML", html))
        for step in parts["steps"]:
            html = render_to_string("runs/_step.html", {"step": step})
            out.append(_partial(f"step-{step.path_id}", "outerHTML", html))
        # A reading that failed before has told nothing: the next one tells it.
        self._parts |= changed
        return "".join(out)

    def _names_of(self, actors: set[str]) -> dict[str, str]:
        unknown = actors - self._names.keys()
        if unknown:
            self._names |= actor_labels(unknown)
        return self._names


_CHANGING: Final = {
    "run-status": "runs/_run_facts.html",
    "run-waiting": "runs/_run_waiting.html",
    "run-artifacts": "runs/_artifacts.html",
}


def frame(run: Run, events: list[Event], known: dict[str, str]) -> str:
    """One frame for a page that has the parts `known`; they are brought up to date."""
    return Shown(known).frame(run, events)


def _touched(events: list[Event], places: Iterable[Path]) -> set[Path]:
    """The places whose rows the events can have changed."""
    paths: set[Path] = set()
    anew: set[Path] = set()
    for event in events:
        path = event.path
        paths.add(path)
        if event.kind == EventKind.NODE:
            paths.add((*path, event.fields["node"]))
        elif event.kind == EventKind.SEND_BACK:
            names = [event.fields["from"], *event.fields.get("rerun", ())]
            anew |= {(*path, name) for name in names}
        elif event.kind.startswith("loop:") or event.kind in _WIDE:
            # The node of a loop, and all that a new round begins again.
            anew.add(path)
            paths.add(path[:-1])
    inside = {at for at in places for top in anew if at[: len(top)] == top} if anew else set()
    return paths | anew | inside


# What begins or ends a graph, a session or the run may change everything inside.
_WIDE: Final = frozenset(
    {EventKind.GRAPH_START, EventKind.GRAPH_END, EventKind.RUN_START, EventKind.RUN_END}
)


def _partial(target: str, swap: str, html: str) -> str:
    return f'<hx-partial hx-target="#{target}" hx-swap="{swap}">{html}</hx-partial>'
