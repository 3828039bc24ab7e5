"""Statuses, events and lengths of time in words for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from runs.kernel.clocks import expired_text
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind
from runs.models import Run, Step
from runs.plaintext import visible
from runs.report import action_words
from runs.report import text as report_text

Facts = Mapping[str, Any]

BETWEEN: Final = report_text.BETWEEN  # the names of a path
span: Final = report_text.span

RUN_WORDS: Final[Mapping[str, str]] = {
    Run.Status.QUEUED: "queued",
    Run.Status.RUNNING: "running",
    Run.Status.WAITING: "waits for a person",
    Run.Status.RETRY_PENDING: "waits for its time",
    Run.Status.PAUSED: "paused",
    Run.Status.PASSED: "passed",
    Run.Status.FAILED: "failed",
    Run.Status.EXHAUSTED: "out of rounds",
    Run.Status.CANCELLED: "cancelled",
}
STEP_WORDS: Final[Mapping[str, str]] = {
    Step.Status.IDLE: "not started",
    Step.Status.QUEUED: "queued",
    Step.Status.RUNNING: "running",
    Step.Status.WAITING: "waits",
    Step.Status.PASSED: "passed",
    Step.Status.FAILED: "failed",
    Step.Status.SKIPPED: "skipped",
    Step.Status.CANCELLED: "did not run",
    Step.Status.EXHAUSTED: "out of rounds",
    Step.Status.SENT_BACK: "runs again",
    Step.Status.RETRY_PENDING: "tries again",
}
_ERRORS: Final = frozenset({EventKind.ERROR, EventKind.STEP_LOST, EventKind.STEP_REFUSED})
_GATES: Final = CALLBACK_KINDS | {
    EventKind.ROUTED,
    EventKind.WITHDRAWN,
    EventKind.REMINDED,
    EventKind.OVERDUE,
    EventKind.ESCALATED,
    EventKind.EXPIRED,
    EventKind.REFUSED,
    EventKind.FORCE_RELEASED,
    EventKind.RESPONDED,
    EventKind.DEPUTIZED,
    EventKind.ASSIGNED,
    EventKind.DELEGATED,
    EventKind.OVERRIDDEN,
}
_OUTPUT: Final = frozenset({EventKind.LOG, EventKind.ARTIFACT, EventKind.CONDITION})


def title(run: Run) -> str:
    """What a run is called on pages."""
    return visible(run.title or run.workflow or f"Questions of {run.stream}")


def about(params: Any, limit: int = 90) -> str:
    """The short parameters of a run, to tell it from its siblings."""
    if not isinstance(params, Mapping):
        return ""
    told = [
        visible(str(value))
        for value in params.values()
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
    ]
    text = " \u00b7 ".join(part for part in told if len(part) <= 60)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def length(start: datetime | None, end: datetime | None) -> str:
    """A length of time with two units at most; empty while either end is missing."""
    if start is None or end is None:
        return ""
    return span((end - start).total_seconds())


def tick(seconds: float, whole: float) -> str:
    """A label of a time axis: short spans in tenths, so that no two labels are the same."""
    if not seconds:
        return "0"
    return f"{seconds:.1f} s" if whole < 20 else span(seconds)


def size(count: int) -> str:
    """Bytes in the unit people read."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def finding(facts: Any) -> str:
    """One finding of a review: how bad, what, who says so, and why it was left."""
    if not isinstance(facts, Mapping):
        return visible(str(facts))[:1_000]
    told = f"{facts.get('severity') or 'block'}: {facts.get('evidence') or ''}"
    if facts.get("reviewer"):
        told += f" ({facts['reviewer']})"
    if facts.get("judgeReason"):
        told += f". The judge: {facts['judgeReason']}"
    return visible(told)[:1_000]


def kind_group(event: Event) -> str:
    """Which filter chip of the feed shows the event."""
    if event.kind in _GATES or event.kind in action_words.GATES:
        return "gates"
    outcome = event.fields.get("outcome")
    failed = isinstance(outcome, Mapping) and outcome.get("status") in ("fail", "exhausted")
    if (
        event.kind in _ERRORS
        or event.kind in action_words.ERRORS
        or failed
        or event.fields.get("level") == "error"
    ):
        return "errors"
    return "output" if event.kind in _OUTPUT else "all"


def event_text(event: Event, actor: str) -> str:
    """Say what happened in one line; `actor` is who did it, in words."""
    tell = _TOLD.get(event.kind)
    return "" if tell is None else tell(event.fields, actor)


def _started(facts: Facts, actor: str) -> str:
    again = f", session {facts['session']}" if facts.get("session", 1) > 1 else ""
    return f"{facts.get('workflow', 'resumed')} by {actor}{again}"


def _by(facts: Facts, actor: str) -> str:
    return f"by {actor}{_after(facts.get('reason'))}"


def _reason(facts: Facts, actor: str) -> str:
    return str(facts.get("reason", ""))


def _message(facts: Facts, actor: str) -> str:
    return str(facts.get("message", ""))


def _sent_back(facts: Facts, actor: str) -> str:
    verdict = "sent back to" if facts["accepted"] else "may not go back to"
    return f"{facts['from']} {verdict} {facts['to']}: {facts['reason']}"


def _condition(facts: Facts, actor: str) -> str:
    met = "met" if facts["result"]["met"] else "not met"
    return f"{facts['label']} {met}: {facts['result'].get('reason', '')}"


def _limits(facts: Facts, actor: str) -> str:
    """Under what a run waits, or was let in: `release, 2 at a time`."""
    return "; ".join(
        f"{one['of'].partition(':')[2]}, {one['limit']} at a time"
        for one in facts.get("limits", ())
    )


def _node(facts: Facts, actor: str) -> str:
    phase = facts["phase"]
    if phase == "start":
        attempt = facts.get("attempt", 1)
        return f"{facts['node']} started" + (f", attempt {attempt}" if attempt > 1 else "")
    if phase == "skip":
        return f"{facts['node']} {facts['outcome'].get('summary', 'skipped')}"
    return f"{facts['node']} {_outcome(facts, actor)}"


def _outcome(facts: Facts, actor: str) -> str:
    outcome = facts["outcome"]
    return f"{outcome['status']}{_after(outcome.get('summary'))}"


def _after(text: Any) -> str:
    return f": {text}" if text else ""


_TOLD: Final[Mapping[str, Callable[[Facts, str], str]]] = {
    EventKind.RUN_START: _started,
    EventKind.RUN_END: _outcome,
    EventKind.RUN_CANCEL: _by,
    EventKind.RUN_RESUMED: _by,
    EventKind.RUN_SWEPT: _by,
    EventKind.RUN_HELD: _reason,
    EventKind.RUN_QUEUED: _limits,
    EventKind.RUN_ADMITTED: _limits,
    EventKind.GRAPH_START: lambda facts, actor: f"{len(facts['nodes'])} steps",
    EventKind.GRAPH_END: _outcome,
    EventKind.NODE: _node,
    EventKind.SEND_BACK: _sent_back,
    EventKind.STEP_LOST: lambda facts, actor: "its worker stopped before the result arrived",
    EventKind.STEP_REFUSED: lambda facts, actor: "a late result was refused",
    EventKind.JOB_START: lambda facts, actor: str(facts.get("label", "")),
    EventKind.JOB_END: _outcome,
    EventKind.CONDITION: _condition,
    EventKind.ARTIFACT: lambda facts, actor: f"{facts['name']}, {size(facts['byteLength'])}",
    EventKind.LOG: _message,
    EventKind.ERROR: _message,
    EventKind.REQUESTED: lambda facts, actor: str(facts["request"]["decisionText"]),
    EventKind.CLAIMED: _by,
    EventKind.RELEASED: _by,
    EventKind.SUBMITTED: _by,
    EventKind.REJECTED: _reason,
    EventKind.WITHDRAWN: _reason,
    EventKind.EXPIRED: lambda facts, actor: expired_text(facts),
    EventKind.REFUSED: _reason,
}
