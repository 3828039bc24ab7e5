"""One turn of an engine: what is asked, what comes back, how it may fail (engines.md section 2).

An engine is any object with a `name` and a `run(request, on_event, cancel)`, sync or async, that
returns an `AgentResult` or raises. One call is one fresh attempt. `on_event` takes mappings with
a `kind`: text, thinking, tool or usage. `cancel.is_set()` says when to stop.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from runs.kernel.errors import EngineError, LoopError, as_loop_error
from runs.kernel.failures import classify_engine_failure
from runs.kernel.jsonable import JSONValue

__all__ = [
    "RECORDED_ENGINE_USAGE",
    "AgentRequest",
    "AgentResult",
    "Engine",
    "EngineError",
    "Part",
    "Selection",
    "engine_failure",
    "final_text",
]

WorkspaceMode = Literal["none", "read", "write"]
OnEvent = Callable[[Mapping[str, Any]], None]
# The key of ctx.state under which a run says which model answered each call (runs.md R50).
RECORDED_ENGINE_USAGE: Final = "obversa:recorded-engine-usage"
UNKNOWN_USAGE: Final[Mapping[str, JSONValue]] = {"kind": "unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """What an engine is asked (engines.md E3); times in milliseconds."""

    prompt: str
    system: str | None = None
    model: str | None = None
    effort: str | None = None
    max_tokens: int | None = None
    json_schema: Mapping[str, JSONValue] | None = None
    tools: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    workspace_mode: WorkspaceMode = "none"
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None
    timeout_grace_ms: int | None = None
    purpose: str | None = None
    leaf: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which model was asked, or answered (engines.md E12)."""

    adapter: str
    provider: str | None = None
    model_family: str | None = None
    model: str | None = None
    effort: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a reply: text, or a structured value; exactly one of a result is final (E9)."""

    text: str = ""
    value: JSONValue = None
    structured: bool = False
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """What came of a turn (engines.md E8, E10)."""

    parts: tuple[Part, ...]
    usage: Mapping[str, JSONValue] = field(default_factory=lambda: dict(UNKNOWN_USAGE))
    requested: Selection | None = None
    effective: Selection | None = None
    stop_reason: str | None = None
    late: bool = False
    """It came after its time, and within the grace that followed (engines.md E14)."""

    @classmethod
    def saying(cls, text: str, **more: Any) -> AgentResult:
        """A result whose only part is this text."""
        return cls(parts=(Part(text=text, final=True),), **more)


class Engine(Protocol):
    """Does turns."""

    @property
    def name(self) -> str:
        """What people call it."""

    def run(
        self, request: AgentRequest, on_event: OnEvent, cancel: Any
    ) -> AgentResult | Awaitable[AgentResult]:
        """One fresh attempt."""


def final_text(result: AgentResult) -> str:
    """The text of the final part; a structured value as JSON (engines.md E39)."""
    finals = [part for part in result.parts if part.final]
    if len(finals) != 1:
        raise EngineError("unknown", f"the reply has {len(finals)} final parts, not one.")
    (part,) = finals
    return json.dumps(part.value) if part.structured else part.text


def engine_failure(raised: BaseException, *, cancelled: bool) -> LoopError:
    """What an engine raised as a typed error: its own code, else ENGINE (runs.md R29, R99)."""
    fallback = "ABORTED" if cancelled else "ENGINE"
    if isinstance(raised, LoopError):
        return raised
    kind = "aborted" if cancelled else classify_engine_failure(raised)
    if not isinstance(raised, EngineError) or raised.kind != kind:
        if kind == "unknown":
            return as_loop_error(raised, fallback=fallback, phase="engine")
        told = EngineError(kind, str(raised) or type(raised).__name__)
        told.__cause__ = raised
        raised = told
    return as_loop_error(raised, fallback=fallback, phase="engine")
