"""What a panel of reviewers came to (workflows.md W92-W101, W103)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from runs.kernel.errors import INFRASTRUCTURE
from runs.kernel.findings import Finding
from runs.kernel.jsonable import JSONValue
from runs.kernel.outcomes import Outcome, Revision

# A reviewer that is wrongly set up says nothing of the work either (W93).
_ERRORS: Final = INFRASTRUCTURE | {"CONFIG"}
_BLOCKING: Final = "WRITE_BOUNDARY"


@dataclass(frozen=True, kw_only=True)
class PanelRule:
    """How many reviewers must agree, and where a refusal goes.

    `scopes` are those a finding may have to count; without them every finding does.
    """

    required: int
    needs_all: bool
    target: str | None = None
    rerun: str | None = None
    scopes: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"required": self.required, "all": self.needs_all}
        told = {"target": self.target, "rerun": self.rerun}
        wire |= {name: value for name, value in told.items() if value is not None}
        if self.scopes is not None:
            wire["scopes"] = list(self.scopes)
        return wire

    @classmethod
    def from_json(cls, wire: Mapping[str, Any]) -> PanelRule:
        scopes = wire.get("scopes")
        return cls(
            required=wire["required"],
            needs_all=wire["all"],
            target=wire.get("target"),
            rerun=wire.get("rerun"),
            scopes=None if scopes is None else tuple(scopes),
        )


def is_fatal(outcome: Outcome) -> bool:
    """Whether a review cannot count whatever it found, as of the writer's own family (W188)."""
    error = outcome.error or {}
    return error.get("code") == "BODY" and error.get("phase") == "review"


def panel_outcome(rule: PanelRule, reviews: Sequence[tuple[str, Outcome]]) -> Outcome:
    """The panel's own outcome, from what each reviewer came to, in their order."""
    if fatal := next((outcome for _, outcome in reviews if is_fatal(outcome)), None):
        return Outcome(status="fail", summary=fatal.summary, error=fatal.error)
    verdicts = [(name, it) for name, it in reviews if _code(it) not in (*_ERRORS, _BLOCKING)]
    errors = [(name, it) for name, it in reviews if _code(it) in (*_ERRORS, _BLOCKING)]
    blocking = [it for _, it in errors if _code(it) == _BLOCKING]
    met = sum(outcome.passed for _, outcome in verdicts)
    found = [one for name, outcome in verdicts for one in _findings(name, outcome)]
    escalated = [replace(one, decision="escalated") for one in found if not _counts(rule, one)]
    findings = [one for one in found if _counts(rule, one)]
    tally = f"{met} of {len(reviews)} reviewers agree, {rule.required} needed"
    data = _data(rule, met, findings, escalated, verdicts, errors)
    confidence = _mean([outcome.confidence for _, outcome in verdicts])
    if not blocking and verdicts and met >= rule.required:
        return Outcome(status="pass", summary=tally, data=data, confidence=confidence)
    rejected = any(not outcome.passed for _, outcome in verdicts)
    if blocking or _is_open(rule, met, len(errors), rejected=rejected):
        first = (blocking or [outcome for _, outcome in errors])[0]
        return Outcome(status="paused", summary=tally, data=data, error=first.error)
    if not findings:
        return Outcome(status="pass", summary=tally, data=data, confidence=confidence)
    lines = [f"{one.reviewer}: {' '.join(one.evidence.split())}" for one in findings]
    rerun = rule.rerun or ("target-and-dependents" if rule.target is not None else None)
    revision = Revision(target=rule.target, reason=tally, findings=tuple(findings), rerun=rerun)
    return Outcome(
        status="fail",
        summary="\n".join([tally, *lines]),
        data=data,
        confidence=confidence,
        revision=revision,
    )


def _code(outcome: Outcome) -> str:
    return "" if outcome.error is None else str(outcome.error.get("code"))


def _is_open(rule: PanelRule, met: int, errors: int, *, rejected: bool) -> bool:
    """Whether the reviewers that did not come to a verdict might still decide it (W95)."""
    if not errors:
        return False
    if rule.needs_all or met + errors >= rule.required:
        return True
    return not rejected


def _findings(name: str, outcome: Outcome) -> list[Finding]:
    """What a reviewer holds against the work; a refusal without findings is one itself (W98)."""
    given = () if outcome.revision is None else outcome.revision.findings
    if outcome.passed:
        return []
    if not given:
        reason = None if outcome.revision is None else outcome.revision.reason
        given = (Finding(evidence=reason or outcome.summary or "no reason given"),)
    return [
        replace(one, reviewer=one.reviewer or name, severity=one.severity or "block")
        for one in given
    ]


def _counts(rule: PanelRule, finding: Finding) -> bool:
    return rule.scopes is None or finding.scope is None or finding.scope in rule.scopes


def _mean(given: Sequence[float | None]) -> float | None:
    known = [value for value in given if value is not None]
    return sum(known) / len(known) if known else None


def _data(
    rule: PanelRule,
    met: int,
    findings: Sequence[Finding],
    escalated: Sequence[Finding],
    verdicts: Sequence[tuple[str, Outcome]],
    errors: Sequence[tuple[str, Outcome]],
) -> dict[str, JSONValue]:
    results: list[JSONValue] = []
    for name, outcome in verdicts:
        result: dict[str, JSONValue] = {"reviewer": name, "met": outcome.passed}
        result["reason"] = outcome.summary or outcome.status
        if outcome.confidence is not None:
            result["confidence"] = outcome.confidence
        results.append(result)
    severities = Counter(one.severity or "block" for one in findings)
    data: dict[str, JSONValue] = {
        "passed": met,
        "required": rule.required,
        "results": results,
        "findings": [one.to_json() for one in findings],
        "escalated": [one.to_json() for one in escalated],
        "errors": [{"reviewer": name, "error": dict(it.error or {})} for name, it in errors],
        "severities": dict(sorted(severities.items())),
    }
    if errors:
        data |= {"degraded": True, "missing": [name for name, _ in errors]}
    return data
