"""One step as plain data: what the record knows of it without its author's code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.kernel.jsonable import JSONValue
from runs.kernel.retries import RetryPolicy


@dataclass(frozen=True, kw_only=True)
class AskShape:
    """A question the kernel can put by itself; `input` is what the author gave, if anything."""

    question: str
    target: str | None = None
    input: JSONValue = None
    has_input: bool = False
    per_attempt: bool = False
    presentation: Mapping[str, JSONValue] = field(default_factory=dict)
    routing: Mapping[str, JSONValue] = field(default_factory=dict)

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"question": self.question}
        if self.target is not None:
            wire["target"] = self.target
        if self.has_input:
            wire["input"] = self.input
        if self.per_attempt:
            wire["perAttempt"] = True
        if self.presentation:
            wire["presentation"] = dict(self.presentation)
        if self.routing:
            wire["routing"] = dict(self.routing)
        return wire

    @classmethod
    def from_json(cls, wire: Mapping[str, Any]) -> AskShape:
        return cls(
            question=wire["question"],
            target=wire.get("target"),
            input=wire.get("input"),
            has_input="input" in wire,
            per_attempt=bool(wire.get("perAttempt")),
            presentation=wire.get("presentation", {}),
            routing=wire.get("routing", {}),
        )


@dataclass(frozen=True, kw_only=True)
class LeafShape:
    """One step's job. `by_worker` is false only when the kernel needs no code to do it."""

    kind: str
    label: str
    by_worker: bool = True
    retry_safe: bool = False
    timeout_ms: int | None = None
    ask: AskShape | None = None
    code: str = ""
    extra: Mapping[str, JSONValue] = field(default_factory=dict)
    retry: RetryPolicy | None = None

    def to_json(self) -> dict[str, JSONValue]:
        wire: dict[str, JSONValue] = {"kind": self.kind, "label": self.label}
        if not self.by_worker:
            wire["byWorker"] = False
        if self.retry_safe:
            wire["retrySafe"] = True
        if self.timeout_ms is not None:
            wire["timeoutMs"] = self.timeout_ms
        if self.ask is not None:
            wire["ask"] = self.ask.to_json()
        if self.code:
            wire["code"] = self.code
        if self.extra:
            wire["extra"] = dict(self.extra)
        if self.retry is not None:
            wire["retry"] = self.retry.to_json()
        return wire

    @classmethod
    def from_json(cls, wire: Mapping[str, Any]) -> LeafShape:
        ask, retry = wire.get("ask"), wire.get("retry")
        return cls(
            kind=wire["kind"],
            label=wire["label"],
            by_worker=wire.get("byWorker", True),
            retry_safe=wire.get("retrySafe", False),
            timeout_ms=wire.get("timeoutMs"),
            ask=None if ask is None else AskShape.from_json(ask),
            code=wire.get("code", ""),
            extra=wire.get("extra", {}),
            retry=None if retry is None else RetryPolicy.from_json(retry),
        )
