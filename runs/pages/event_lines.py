"""The record as lines for people: what happened in words, and what to whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from runs.kernel.events import Event, EventKind, Path
from runs.kernel.moments import moment
from runs.pages import round_lines, words
from runs.people.actors import actor_labels
from runs.plaintext import first_line, visible
from runs.report import action_words, engine_words

Facts = Mapping[str, Any]

MAX_TEXT: Final = 400
# What a step said stands whole under the step.
MAX_LINE: Final = 200
_WORDS: Final[Mapping[str, str]] = {
    EventKind.RUN_START: "run started",
    EventKind.RUN_CANCEL: "cancel asked",
    EventKind.RUN_HELD: "run held",
    EventKind.RUN_RESUMED: "run resumed",
    EventKind.RUN_SWEPT: "run looked at anew",
    EventKind.RUN_QUEUED: "run queued",
    EventKind.RUN_ADMITTED: "run let in",
    EventKind.GRAPH_ANCHOR: "workflow started",
    EventKind.GRAPH_START: "graph started",
    EventKind.SEND_BACK: "sent back",
    EventKind.STEP_READY: "step ready",
    EventKind.STEP_LOST: "step lost",
    EventKind.STEP_REFUSED: "result refused",
    EventKind.JOB_START: "job started",
    EventKind.CONDITION: "condition",
    EventKind.ARTIFACT: "file kept",
    EventKind.LOG: "log",
    EventKind.ERROR: "error",
    EventKind.REQUESTED: "question asked",
    EventKind.ROUTED: "question routed",
    EventKind.CLAIMED: "claimed",
    EventKind.RELEASED: "released",
    EventKind.REJECTED: "answer refused",
    EventKind.SUPERSEDED: "question replaced",
    EventKind.WITHDRAWN: "question withdrawn",
    EventKind.REMINDED: "reminder",
    EventKind.OVERDUE: "not answered in time",
    EventKind.ESCALATED: "question escalated",
    EventKind.EXPIRED: "question expired",
    EventKind.REFUSED: "kept from answering",
    EventKind.FORCE_RELEASED: "claim taken away",
    EventKind.RESPONDED: "one of several answered",
    EventKind.DEPUTIZED: "answers for another",
    EventKind.ASSIGNED: "question assigned",
    EventKind.DELEGATED: "question handed on",
    EventKind.OVERRIDDEN: "glass broken",
    **action_words.WORDS,
    **engine_words.WORDS,
    **round_lines.WORDS,
}
_ENDS: Final[Mapping[str, str]] = {
    EventKind.RUN_END: "run",
    EventKind.GRAPH_END: "graph",
    EventKind.LOOP_END: "loop",
    EventKind.NODE: "step",
    EventKind.JOB_END: "job",
}
_ENDED: Final[Mapping[str, str]] = {
    "pass": "passed",
    "fail": "failed",
    "paused": "waits",
    "aborted": "cancelled",
    "exhausted": "out of rounds",
}
# What repeats a step's own line, for those who look closer.
_NOT_RUN: Final = "not run: "
_QUIET: Final = frozenset(
    {
        EventKind.GRAPH_ANCHOR,
        EventKind.GRAPH_START,
        EventKind.GRAPH_END,
        EventKind.JOB_START,
        EventKind.JOB_END,
        EventKind.ROUTED,
        EventKind.STEP_READY,
        *action_words.QUIET,
        *engine_words.QUIET,
        *round_lines.QUIET,
    }
)


@dataclass(frozen=True, kw_only=True)
class EventView:
    """One line of the record."""

    seq: int
    kind: str
    kind_group: str
    words: str
    quiet: bool
    text: str
    at: datetime
    path_text: str


def event_views(
    events: list[Event],
    places: Mapping[Path, Mapping[str, Any]] | None = None,
    labels: Mapping[str, str] | None = None,
) -> list[EventView]:
    """The events as lines, with one query for all names; `places` are the steps of the run.

    `labels` are the names, where they are known.
    """
    if labels is None:
        labels = actor_labels(event.actor for event in events)
    return [
        EventView(
            seq=event.seq,
            kind=event.kind,
            kind_group=_group(event),
            words=in_words(event),
            quiet=event.kind in _QUIET or in_words(event) in ("step not run", "question closed"),
            text=_told(event, visible(labels.get(event.actor, event.actor)))[:MAX_TEXT],
            at=moment(event.ts),
            path_text="" if event.kind == EventKind.NODE else _place(event, places or {}),
        )
        for event in events
    ]


def _group(event: Event) -> str:
    """A no that sends work back is a decision, not an error."""
    outcome = event.fields.get("outcome")
    if isinstance(outcome, Mapping) and _is_sent_back(outcome):
        return "all"
    return round_lines.GROUPS.get(event.kind) or words.kind_group(event)


def _place(event: Event, places: Mapping[Path, Mapping[str, Any]]) -> str:
    """The steps it happened in, from the outermost to its own."""
    path = event.path
    if not places:
        return visible(words.BETWEEN.join(path[1::2]))
    # A loop's own events stand where its body does, and so do those of its review.
    in_loop = len(path) == 1 or places.get(path[:-1], {}).get("kind") == "loop"
    last = len(path) if in_loop else len(path) + 1
    names = [str(places[path[:at]]["name"]) for at in range(last) if path[:at] in places]
    return visible(words.BETWEEN.join(names))


def in_words(event: Event) -> str:
    """What happened, in two or three words; the kind itself where this version knows none."""
    if event.kind == EventKind.LOOP_REVIEW:
        return round_lines.review_words(event.fields)
    if event.kind in _ENDS:
        return f"{_ENDS[EventKind(event.kind)]} {_phase(event.fields)}"
    if event.kind == EventKind.SUBMITTED:
        response = event.fields.get("response")
        given = response.get("approved") if isinstance(response, Mapping) else None
        if isinstance(given, bool):
            return "approved" if given else "refused"
        return "answered"
    if _closes_itself(event):
        return "question closed"
    return _WORDS.get(event.kind, visible(event.kind))


def _closes_itself(event: Event) -> bool:
    """Whether a question was withdrawn or expired, so that nothing took its place."""
    return event.kind == EventKind.SUPERSEDED and event.fields.get(
        "supersededBy"
    ) == event.fields.get("requestId")


def _phase(facts: Facts) -> str:
    match facts.get("phase"):
        case "start":
            return "started"
        case "skip":
            return "skipped"
    outcome = facts["outcome"]
    if str(outcome.get("summary") or "").startswith(_NOT_RUN):
        return "not run"
    if _is_sent_back(outcome):
        return "refused"
    return _ENDED.get(str(outcome.get("status")), "ended")


def _is_sent_back(outcome: Facts) -> bool:
    """Whether the outcome asks an earlier step to run again: no error, a decision."""
    revision = outcome.get("revision")
    return isinstance(revision, Mapping) and bool(revision.get("target"))


def _told(event: Event, actor: str) -> str:
    tell = _TOLD.get(event.kind)
    if tell is not None:
        return visible(tell(event.fields, actor))
    if event.kind in action_words.WORDS:
        return visible(action_words.said(event.kind, event.fields))
    if event.kind in engine_words.WORDS:
        return visible(engine_words.said(event.kind, event.fields))
    if (told := round_lines.told(event)) is not None:
        return visible(told)
    return visible(words.event_text(event, actor))


def _node(facts: Facts, actor: str) -> str:
    """The step by its name, and what it said at its end."""
    if facts.get("phase") == "start":
        attempt = facts.get("attempt", 1)
        return f"{facts['node']}, round {attempt}" if attempt > 1 else str(facts["node"])
    said = _summary(facts).removeprefix("skipped: ").removeprefix(_NOT_RUN)
    return _with(str(facts["node"]), said)


def _summary(facts: Facts, actor: str = "") -> str:
    summary = str(facts["outcome"].get("summary") or "")
    asked = summary.removeprefix("waiting for a person: ")
    return first_line(asked, MAX_LINE)


def _condition(facts: Facts, actor: str) -> str:
    """How it turned out and, of what it looked at, the first line."""
    result = facts["result"]
    met = "met" if result["met"] else "not met"
    return _with(f"{facts['label']} {met}", first_line(str(result.get("reason") or ""), MAX_LINE))


def _submitted(facts: Facts, actor: str) -> str:
    response = facts.get("response")
    note = response.get("note") if isinstance(response, Mapping) else None
    return _with(f"by {actor}", note if isinstance(note, str) else "")


def _rejected(facts: Facts, actor: str) -> str:
    return _with(f"by {actor}", str(facts.get("reason", "")))


def _with(first: str, more: str) -> str:
    return f"{first}: {more}" if more else first


_TOLD: Final[Mapping[str, Callable[[Facts, str], str]]] = {
    EventKind.NODE: _node,
    EventKind.JOB_START: lambda facts, actor: "",
    EventKind.JOB_END: _summary,
    EventKind.GRAPH_END: _summary,
    EventKind.RUN_END: _summary,
    EventKind.CONDITION: _condition,
    EventKind.REQUESTED: lambda facts, actor: first_line(str(facts["request"]["decisionText"])),
    EventKind.SUBMITTED: _submitted,
    EventKind.REJECTED: _rejected,
    EventKind.REFUSED: _rejected,
    EventKind.FORCE_RELEASED: _rejected,
    EventKind.RESPONDED: _submitted,
    EventKind.DEPUTIZED: lambda facts, actor: f"by {actor}",
    EventKind.ASSIGNED: _rejected,
    EventKind.DELEGATED: _rejected,
    EventKind.OVERRIDDEN: _rejected,
}
