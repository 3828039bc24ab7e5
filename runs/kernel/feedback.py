"""What a writer is told of the review its last work got (runs.md R41-R43)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from runs.kernel.findings import Finding
from runs.kernel.outcomes import Outcome


def feedback_text(review: Outcome, *, target: str | None = None) -> str:
    """The review as a block of a prompt: where it came from, why, and one line per finding."""
    revision = review.revision
    lines = ["Your last work was not accepted. Change it so that every point below is answered."]
    told = {
        "Target": (revision.target if revision else None) or target,
        "From": revision.source if revision else None,
        "Decision": revision.decision if revision else None,
        "Reason": (revision.reason if revision else None) or review.summary,
    }
    lines += [f"{name}: {quoted(value)}" for name, value in told.items() if value]
    lines += [finding_line(one) for one in (revision.findings if revision else ())]
    return "\n".join(lines)


def finding_line(finding: Finding) -> str:
    """One finding on one line; what others wrote is quoted as data."""
    parts = [f"- [{finding.severity}]"]
    if finding.reviewer:
        parts.append(f"{quoted(finding.reviewer)}:")
    parts.append(quoted(finding.evidence))
    if finding.recommendation:
        parts.append(f"Recommended: {quoted(finding.recommendation)}")
    if finding.judge_reason:
        parts.append(f"To be acted on because: {quoted(finding.judge_reason)}")
    return " ".join(parts)


def skipped_text(findings: Iterable[Any]) -> str:
    """Findings that are settled and must not come back."""
    lines = ["These findings were weighed and set aside. Do not raise them again."]
    lines += [finding_line(Finding.from_json(given)) for given in findings]
    return "\n".join(lines)


def plain(value: Any) -> Any:
    """A frozen JSON value as one that can be written out."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def quoted(text: Any) -> str:
    """A stranger's text as data: JSON, so that nothing in it reads as an instruction (W88)."""
    return json.dumps(text, ensure_ascii=False)
