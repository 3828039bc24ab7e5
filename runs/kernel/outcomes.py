"""What a step, a graph or a run came to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast

from runs.kernel.errors import LoopError
from runs.kernel.findings import Finding
from runs.kernel.jsonable import JSONValue, snapshot

__all__ = [
    "EXIT_PAUSED",
    "Finding",
    "Outcome",
    "Revision",
    "Status",
    "exit_code_for",
    "failing",
    "kickback",
    "passing",
    "revision_request",
]

Status = Literal["pass", "fail", "aborted", "exhausted", "paused"]
STATUSES: Final = ("pass", "fail", "aborted", "exhausted", "paused")
# An outcome is repeated inside the outcomes of the graphs around it; this leaves them room.
MAX_OUTCOME_DEPTH: Final = 128
EXIT_PAUSED: Final = 75
_EXIT_CODES: Final = {"pass": 0, "fail": 1, "exhausted": 2, "aborted": 130, "paused": EXIT_PAUSED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A request to do earlier work again; the only channel for feedback (runs.md R17)."""

    target: str | None = None
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    rerun: str | None = None
    source: str | None = None
    decision: str | None = None

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"reason": self.reason}
        for name in ("target", "rerun", "source", "decision"):
            if (value := getattr(self, name)) is not None:
                wire[name] = value
        wire["findings"] = [finding.to_json() for finding in self.findings]
        return wire

    @classmethod
    def from_json(cls, wire: Mapping[str, Any] | Revision) -> Revision:
        """Read the wire form; a revision stays as it is."""
        if isinstance(wire, Revision):
            return wire
        return cls(
            target=wire.get("target"),
            reason=wire.get("reason", ""),
            findings=tuple(Finding.from_json(item) for item in wire.get("findings", ())),
            rerun=wire.get("rerun"),
            source=wire.get("source"),
            decision=wire.get("decision"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a step, a graph or a run (runs.md section 3). Only `status` is required."""

    status: Status
    summary: str | None = None
    data: JSONValue = None
    confidence: float | None = None
    late: bool = False
    error: Mapping[str, JSONValue] | None = None
    """The JSON form of a LoopError; the error itself may be given and is turned into it."""
    revision: Revision | None = None
    open_findings: tuple[Finding, ...] = ()
    discarded: tuple[JSONValue, ...] = ()
    command: Mapping[str, JSONValue] | None = None
    stall: Mapping[str, JSONValue] | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is none of {', '.join(STATUSES)}.")
        if self.summary is not None and not isinstance(self.summary, str):
            raise TypeError(f"the summary of an outcome is text, not {self.summary!r}.")
        if self.confidence is not None and not _is_fraction(self.confidence):
            raise ValueError(f"confidence {self.confidence!r} is no number from 0 to 1.")
        if isinstance(self.error, LoopError):
            object.__setattr__(self, "error", self.error.to_json())

    @property
    def passed(self) -> bool:
        return self.status == "pass"

    @property
    def skipped(self) -> bool:
        """True for a step whose `when` was not met; it counts as passed (runs.md R117)."""
        return isinstance(self.data, Mapping) and self.data.get("skipped") is True

    @property
    def retryable(self) -> bool:
        """False only for an error that a second try cannot mend."""
        return self.error is None or bool(self.error.get("retryable"))

    def evolve(self, **changes: Any) -> Outcome:
        return replace(self, **changes)

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"status": self.status}
        if self.confidence is not None:
            wire["confidence"] = self.confidence
        if self.late:
            wire["late"] = True
        for name in ("summary", "data", "error", "command", "stall"):
            if (value := getattr(self, name)) is not None:
                wire[name] = value
        if self.revision is not None:
            wire["revision"] = self.revision.to_json()
        if self.open_findings:
            wire["openFindings"] = [finding.to_json() for finding in self.open_findings]
        if self.discarded:
            wire["discarded"] = list(self.discarded)
        return wire

    @classmethod
    def from_json(cls, wire: Mapping[str, Any]) -> Outcome:
        """Read the wire form; raises ValueError for a status that is none, KeyError without one."""
        revision = wire.get("revision")
        return cls(
            status=wire["status"],
            summary=wire.get("summary"),
            data=wire.get("data"),
            confidence=wire.get("confidence"),
            late=bool(wire.get("late", False)),
            error=wire.get("error"),
            revision=None if revision is None else Revision.from_json(revision),
            open_findings=tuple(Finding.from_json(item) for item in wire.get("openFindings", ())),
            discarded=tuple(wire.get("discarded", ())),
            command=wire.get("command"),
            stall=wire.get("stall"),
        )

    def frozen(self) -> Outcome:
        """The same outcome with its JSON parts copied and checked (raises JsonValueError)."""
        wire = snapshot(self.to_json(), max_depth=MAX_OUTCOME_DEPTH)
        return Outcome.from_json(cast("Mapping[str, Any]", wire))


def _is_fraction(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def passing(summary: str | None = None, data: JSONValue = None) -> Outcome:
    """A pass with these words."""
    return Outcome(status="pass", summary=summary, data=data)


def failing(error: LoopError, summary: str | None = None) -> Outcome:
    """A fail that carries a typed error; the summary is the error's text unless given."""
    return Outcome(status="fail", summary=summary or error.message, error=error.to_json())


def revision_request(
    target: str | None = None,
    reason: str | None = None,
    *,
    findings: Iterable[Finding | Mapping[str, Any]] | None = None,
    rerun: str | None = None,
    source: str | None = None,
    decision: str | None = None,
    **over: Any,
) -> Outcome:
    """A fail that asks for earlier work to be done again (runs.md R21-R23)."""
    found = tuple(Finding.from_json(item) for item in findings or ())
    text = reason if reason and reason.strip() else _reason(found)
    if target is not None and rerun is None:
        rerun = "target-and-dependents"
    revision = Revision(
        target=target,
        reason=text,
        findings=found,
        rerun=rerun if target is not None else None,
        source=source,
        decision=decision,
    )
    over.setdefault("status", "fail")
    over.setdefault("summary", text)
    return Outcome(revision=revision, **over)


def kickback(to: str, reason: str, **over: Any) -> Outcome:
    """Send the work back to the node `to` (runs.md R24)."""
    return revision_request(target=to, reason=reason, **over)


def _reason(findings: tuple[Finding, ...]) -> str:
    match findings:
        case ():
            return "The work needs another round."
        case (only,):
            return " ".join(only.evidence.split())
        case _:
            return f"{len(findings)} findings need another round."


def exit_code_for(outcome: Outcome | str) -> int:
    """The exit code of a script that ended so: 0, 1, 2, 130 or 75 (runs.md R202)."""
    return _EXIT_CODES[outcome if isinstance(outcome, str) else outcome.status]
