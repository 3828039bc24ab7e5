"""The lines of the record about loops, limits and retries (runs.md section 12, I89)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from runs.kernel.events import Event, EventKind
from runs.pages import words
from runs.plaintext import first_line

Facts = Mapping[str, Any]
MAX_LINE: Final = 200
RETRY: Final = EventKind.RETRY_PENDING

WORDS: Final[Mapping[str, str]] = {
    EventKind.LOOP_START: "loop started",
    EventKind.LOOP_ITERATION: "round started",
    EventKind.LOOP_CONDITION: "condition",
    EventKind.LOOP_PROGRESS: "work looked at",
    EventKind.LOOP_STALL: "no progress",
    EventKind.LOOP_WAIT: "pause before the next round",
    EventKind.LOOP_COMPLETE: "loop closed",
    EventKind.HEARTBEAT: "alive",
    EventKind.RUN_ABORT: "run aborted",
    EventKind.PROOF: "proof kept",
    EventKind.ENGINE_TEXT: "said",
    EventKind.ENGINE_THINKING: "thought",
    RETRY: "tries again",
    EventKind.RETRY_NOW: "tried at once",
    EventKind.LIMIT_WAIT: "limit reached",
    EventKind.LIMIT_PAUSE: "limit reached",
}
QUIET: Final = frozenset(
    {
        EventKind.LOOP_PROGRESS,
        EventKind.LOOP_COMPLETE,
        EventKind.HEARTBEAT,
        EventKind.ENGINE_TEXT,
        EventKind.ENGINE_THINKING,
    }
)
# Which filter of the feed shows them; a review that rejects is a decision and no error.
GROUPS: Final[Mapping[str, str]] = {
    EventKind.LOOP_CONDITION: "output",
    EventKind.LOOP_REVIEW: "all",
    EventKind.LOOP_STALL: "errors",
    EventKind.RUN_ABORT: "errors",
    EventKind.PROOF: "output",
    EventKind.ENGINE_TEXT: "output",
    EventKind.ENGINE_THINKING: "output",
    RETRY: "errors",
    EventKind.LIMIT_WAIT: "errors",
    EventKind.LIMIT_PAUSE: "errors",
}


def review_words(facts: Facts) -> str:
    """What came of a loop's review."""
    if _status(facts) == "pass":
        return "review passed"
    return "review sent it round again" if facts.get("accepted") else "review rejected"


def told(event: Event) -> str | None:
    """The text of the line; None for a kind that is told elsewhere."""
    tell = _TOLD.get(event.kind)
    return None if tell is None else tell(event.fields)


def _status(facts: Facts) -> str:
    outcome = facts.get("outcome")
    return str(outcome.get("status") or "") if isinstance(outcome, Mapping) else ""


def _of(facts: Facts, *names: str) -> Any:
    """A field by the first of its spellings that is there."""
    return next((facts[name] for name in names if facts.get(name) is not None), None)


def _start(facts: Facts) -> str:
    return f"{_count(facts['max'], 'round')} at most" if facts.get("max") else ""


def _condition(facts: Facts) -> str:
    error = facts.get("error")
    result = facts.get("result") or error or {}
    met = "raised" if error else "met" if result.get("met") else "not met"
    name = {"stopOn": "stop"}.get(str(facts.get("which")), str(facts.get("which") or "until"))
    reason = first_line(str(result.get("reason") or result.get("message") or ""), MAX_LINE)
    return f"{name} {met}: {reason}" if reason else f"{name} {met}"


def _review(facts: Facts) -> str:
    outcome = facts.get("outcome") or {}
    revision = outcome.get("revision") or {}
    reason = first_line(str(revision.get("reason") or outcome.get("summary") or ""), MAX_LINE)
    findings = revision.get("findings") or outcome.get("openFindings") or ()
    counted = _count(len(findings), "finding") if findings else ""
    first = words.finding(findings[0]) if findings else ""
    more = f"{counted}, first {first}" if first and first.partition(": ")[2] != reason else counted
    return "; ".join(part for part in (reason, more) if part)


def _stall(facts: Facts) -> str:
    report = facts.get("report") or {}
    return first_line(str(report.get("reason") or ""), MAX_LINE)


def _end(facts: Facts) -> str:
    outcome = facts.get("outcome") or {}
    rounds = facts.get("iterations")
    after = f"after {_count(rounds, 'round')}" if rounds else ""
    said = first_line(str(outcome.get("summary") or ""), MAX_LINE)
    return ": ".join(part for part in (after, said) if part)


def failed_attempt(facts: Facts) -> str:
    """Which attempt failed and why, as I89 has them; on the wire or as Python spells them."""
    attempt, most = _of(facts, "attempt"), _of(facts, "maxAttempts", "max_attempts")
    error = facts.get("error")
    reason = _of(error, "message", "code") if isinstance(error, Mapping) else error
    parts = [
        f"attempt {attempt}{f' of {most}' if most else ''} failed" if attempt else "",
        first_line(str(reason or ""), MAX_LINE),
    ]
    return ": ".join(part for part in parts if part)


def _retry(facts: Facts) -> str:
    text, wait = failed_attempt(facts).removesuffix("."), _of(facts, "delayMs", "delay_ms")
    return f"{text}; next in {words.span(wait / 1000)}" if isinstance(wait, int | float) else text


def _limit(facts: Facts) -> str:
    wait = facts.get("waitMs")
    said = first_line(str(facts.get("reason") or facts.get("code") or ""), MAX_LINE)
    return f"{said}; goes on in {words.span(wait / 1000)}" if isinstance(wait, int) else said


def _wait(facts: Facts) -> str:
    wait = facts.get("waitMs")
    return words.span(wait / 1000) if isinstance(wait, int | float) else ""


def _count(number: Any, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


_TOLD: Final[Mapping[str, Callable[[Facts], str]]] = {
    EventKind.LOOP_START: _start,
    EventKind.LOOP_ITERATION: lambda facts: f"round {facts.get('iteration')}",
    EventKind.LOOP_CONDITION: _condition,
    EventKind.LOOP_REVIEW: _review,
    EventKind.LOOP_STALL: _stall,
    EventKind.LOOP_WAIT: _wait,
    EventKind.LOOP_END: _end,
    EventKind.RUN_ABORT: lambda facts: str(facts.get("signal") or ""),
    EventKind.PROOF: lambda facts: str(facts.get("name") or ""),
    EventKind.ENGINE_TEXT: lambda facts: first_line(str(facts.get("delta") or ""), MAX_LINE),
    EventKind.ENGINE_THINKING: lambda facts: first_line(str(facts.get("delta") or ""), MAX_LINE),
    RETRY: _retry,
    EventKind.LIMIT_WAIT: _limit,
    EventKind.LIMIT_PAUSE: _limit,
}
