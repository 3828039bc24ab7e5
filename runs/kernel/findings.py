"""One thing that a reviewer, a command or a person found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from runs.kernel.jsonable import JSONValue

SEVERITIES: Final = ("block", "should-fix", "nice-to-have", "approve")
DECISIONS: Final = ("accepted", "rejected", "deferred", "escalated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found, how bad it is and what was made of it (runs.md R16)."""

    evidence: str
    severity: str = "block"
    reviewer: str | None = None
    decision: str | None = None
    scope: str | None = None
    recommendation: str | None = None
    raised_by: tuple[str, ...] = ()
    votes: tuple[JSONValue, ...] = ()
    disputed: bool = False
    judge_reason: str | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.evidence, str):
            raise TypeError(f"the evidence of a finding is text, not {self.evidence!r}.")
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity {self.severity!r} is none of {', '.join(SEVERITIES)}.")
        if self.decision is not None and self.decision not in DECISIONS:
            raise ValueError(f"decision {self.decision!r} is none of {', '.join(DECISIONS)}.")

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"evidence": self.evidence, "severity": self.severity}
        for name in _TEXTS:
            if (value := getattr(self, name)) is not None:
                wire[_WIRE.get(name, name)] = value
        if self.raised_by:
            wire["raisedBy"] = list(self.raised_by)
        if self.votes:
            wire["votes"] = list(self.votes)
        if self.disputed:
            wire["disputed"] = True
        return wire

    @classmethod
    def from_json(cls, wire: Mapping[str, Any] | Finding) -> Finding:
        """Read the wire form; a finding stays as it is."""
        if isinstance(wire, Finding):
            return wire
        texts = {name: wire.get(_WIRE.get(name, name)) for name in _TEXTS}
        return cls(
            evidence=wire["evidence"],
            severity=wire.get("severity") or "block",
            raised_by=tuple(wire.get("raisedBy", ())),
            votes=tuple(wire.get("votes", ())),
            disputed=bool(wire.get("disputed", False)),
            **texts,
        )


_TEXTS: Final = ("reviewer", "decision", "scope", "recommendation", "judge_reason", "id")
_WIRE: Final = {"judge_reason": "judgeReason"}
