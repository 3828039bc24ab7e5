"""A decision in a model's reply: a pass, or work to be revised (workflows.md W178-W181)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from runs.kernel.findings import SEVERITIES, Finding
from runs.kernel.outcomes import Outcome, revision_request

INVALID_TEAM_DECISION: Final = "the reply holds no decision"
_TRIES: Final = 2_000
_WORDS: Final = ("evidence", "message", "description", "title")


def objects_in(text: str) -> Iterator[Mapping[str, Any]]:
    """Every JSON object of a text, in order; one inside another is part of it."""
    decoder, at = json.JSONDecoder(), text.find("{")
    for _ in range(_TRIES):
        if at < 0:
            return
        end = at + 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, Mapping):
            yield value
        at = text.find("{", end)


def last_object(text: str, is_it: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any] | None:
    """The last object for which it is so; examples before it do not count."""
    found = None
    for one in objects_in(text):
        found = one if is_it(one) else found
    return found


def is_decision(value: Mapping[str, Any]) -> bool:
    """Whether an object says pass or revise, and why."""
    summary = value.get("summary")
    words = isinstance(summary, str) and bool(summary.strip())
    return value.get("status") in ("pass", "revise") and words


def outcome_from_agent_text(text: str, target: str | None = None) -> Outcome:
    """What the last decision in the text comes to; a revision goes to `target`.

    Without a decision it is a failure whose summary is INVALID_TEAM_DECISION.
    """
    decision = last_object(text, is_decision)
    if decision is None:
        return Outcome(status="fail", summary=INVALID_TEAM_DECISION, data={"reply": text})
    summary = " ".join(str(decision["summary"]).split())
    rejects = decision["status"] == "revise"
    findings, dropped = findings_of(decision.get("findings"), rejects=rejects)
    data: dict[str, Any] = {"dropped": dropped} if dropped else {}
    if rejects:
        return revision_request(target, summary, findings=findings, data=data or None)
    if findings:
        data["findings"] = [one.to_json() for one in findings]
    return Outcome(status="pass", summary=summary, data=data or None)


def findings_of(given: Any, *, rejects: bool) -> tuple[list[Finding], int]:
    """The findings a model lists, made whole, and how many held no text (W181)."""
    items = given if isinstance(given, list) else []
    read = [_finding(item, rejects=rejects) for item in items]
    found = [one for one in read if one is not None]
    return found, len(read) - len(found)


def _finding(item: Any, *, rejects: bool) -> Finding | None:
    if isinstance(item, str):
        item = {"evidence": item}
    if not isinstance(item, Mapping):
        return None
    words = (item.get(name) for name in _WORDS)
    evidence = next((one for one in words if isinstance(one, str) and one.strip()), None)
    if evidence is None:
        return None
    severity = item.get("severity")
    known = severity if severity in SEVERITIES else ("block" if rejects else "nice-to-have")
    recommendation, scope = item.get("recommendation"), item.get("scope")
    return Finding(
        evidence=evidence,
        severity=known,
        recommendation=recommendation if isinstance(recommendation, str) else None,
        scope=scope if isinstance(scope, str) else None,
    )
