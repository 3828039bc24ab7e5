"""A loop as plain data: a body that runs until its condition holds (runs.md section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from runs.kernel.jsonable import JSONValue

if TYPE_CHECKING:
    from runs.kernel.graph import Shape

Data = Mapping[str, JSONValue]
# The source of a revision that a stage asks of itself: a declared file is not there (W27).
FILES: Final = "files"


@dataclass(frozen=True, kw_only=True)
class StallRule:
    """When rounds that change nothing end the loop (runs.md R168).

    `signal` is the digest of the author's function that names the state of the work, if any.
    """

    window: int
    min_confidence_delta: float = 0.02
    workspace: bool = True
    gate: bool = False
    signal: str = ""

    @property
    def looks(self) -> bool:
        """Whether a worker has to look at the work after each round."""
        return self.workspace or bool(self.signal)

    def to_json(self) -> dict[str, JSONValue]:
        return {
            "window": self.window,
            "minConfidenceDelta": self.min_confidence_delta,
            "workspace": self.workspace,
            "gate": self.gate,
            "signal": self.signal,
        }

    @classmethod
    def from_json(cls, wire: Mapping[str, Any]) -> StallRule:
        return cls(
            window=wire["window"],
            min_confidence_delta=wire["minConfidenceDelta"],
            workspace=wire["workspace"],
            gate=wire["gate"],
            signal=wire["signal"],
        )


@dataclass(frozen=True, kw_only=True)
class RetryRule:
    """What a body that raises does to its loop (runs.md R162). Times in milliseconds."""

    fails: bool = False
    max_consecutive: int | None = None
    backoff_ms: int = 0

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"onError": "fail" if self.fails else "continue"}
        if self.max_consecutive is not None:
            wire["maxConsecutive"] = self.max_consecutive
        if self.backoff_ms:
            wire["backoffMs"] = self.backoff_ms
        return wire

    @classmethod
    def from_json(cls, wire: Mapping[str, Any]) -> RetryRule:
        return cls(
            fails=wire.get("onError") == "fail",
            max_consecutive=wire.get("maxConsecutive"),
            backoff_ms=wire.get("backoffMs", 0),
        )


@dataclass(frozen=True, kw_only=True)
class LoopShape:
    """A body, the checks around it and the review behind it. Conditions are condition data."""

    name: str
    body: Shape
    review: Shape | None = None
    start: Data | None = None
    until: Data | None = None
    stop_on: Data | None = None
    max: int | None = None
    max_review_restarts: int | None = None
    check_first: bool = False
    no_progress: StallRule | None = None
    delay_ms: int = 0
    retry: RetryRule | None = None
    on_iteration: str = ""
    on_complete: str = ""
    keeps_rounds: bool = False
    """The rounds of a workflow's stage: they count over sessions and with what is sent back to it,
    and a failure that asks for no other round is the end (workflows.md W68, W80)."""
    kind: ClassVar[str] = "loop"

    @property
    def looks_after(self) -> bool:
        """Whether a worker has something to do after each body, before the checks."""
        watches = self.no_progress is not None and self.no_progress.looks
        return bool(self.on_iteration) or watches

    def condition(self, which: str) -> Data | None:
        """The condition of a check: `start`, `until` or `stopOn`."""
        return {"start": self.start, "until": self.until, "stopOn": self.stop_on}.get(which)

    def rules(self) -> dict[str, JSONValue]:
        """Everything but the jobs: what must stay the same for a recorded loop to go on."""
        wire: dict[str, JSONValue] = {"name": self.name}
        checks = {which: self.condition(which) for which in ("start", "until", "stopOn")}
        wire |= {which: dict(data) for which, data in checks.items() if data is not None}
        counts = {"max": self.max, "maxReviewRestarts": self.max_review_restarts}
        wire |= {name: count for name, count in counts.items() if count is not None}
        if self.check_first:
            wire["checkFirst"] = True
        if self.no_progress is not None:
            wire["noProgress"] = self.no_progress.to_json()
        if self.delay_ms:
            wire["delayMs"] = self.delay_ms
        if self.retry is not None:
            wire["retry"] = self.retry.to_json()
        if self.keeps_rounds:
            wire["keepsRounds"] = True
        return wire

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"kind": self.kind, **self.rules()}
        wire["body"] = self.body.to_json()
        if self.review is not None:
            wire["review"] = self.review.to_json()
        calls = {"onIteration": self.on_iteration, "onComplete": self.on_complete}
        return wire | {name: digest for name, digest in calls.items() if digest}

    @classmethod
    def read(cls, wire: Mapping[str, Any], *, body: Shape, review: Shape | None) -> LoopShape:
        """Read back what `to_json` wrote, with the jobs read already."""
        stall, retry = wire.get("noProgress"), wire.get("retry")
        return cls(
            name=wire["name"],
            body=body,
            review=review,
            start=wire.get("start"),
            until=wire.get("until"),
            stop_on=wire.get("stopOn"),
            max=wire.get("max"),
            max_review_restarts=wire.get("maxReviewRestarts"),
            check_first=wire.get("checkFirst", False),
            no_progress=None if stall is None else StallRule.from_json(stall),
            delay_ms=wire.get("delayMs", 0),
            retry=None if retry is None else RetryRule.from_json(retry),
            on_iteration=wire.get("onIteration", ""),
            on_complete=wire.get("onComplete", ""),
            keeps_rounds=wire.get("keepsRounds", False),
        )
