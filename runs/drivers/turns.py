"""Have an engine do a turn for a step, and record what it cost."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Mapping
from typing import Any

from runs.drivers.context import Context
from runs.kernel.jsonable import JSONValue
from runs.kernel.turns import (
    UNKNOWN_USAGE,
    AgentRequest,
    AgentResult,
    EngineError,
    engine_failure,
    final_text,
)


class _Ear:
    """Hears one attempt; its usage is recorded once, whatever the engine says (engines.md E6)."""

    def __init__(self, ctx: Context, request: AgentRequest) -> None:
        self.ctx = ctx
        self.model = request.model or ""
        self.usage: dict[str, Any] | None = None
        self._lock = threading.Lock()

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take an event of the engine; text and thinking are not kept."""
        fields = {key: value for key, value in event.items() if key != "kind"}
        if event["kind"] == "tool":
            self.ctx.emit("engine:tool", **fields)
        elif event["kind"] == "usage":
            with self._lock:
                self.usage = fields

    def record(self, result: AgentResult | None) -> None:
        """Record the usage; what is not known is not invented (runs.md R212)."""
        usage: Mapping[str, JSONValue] = UNKNOWN_USAGE if result is None else result.usage
        model = self.model
        if result is not None and result.effective is not None:
            model = result.effective.model or model
        fields = {"model": model, "usage": dict(usage), **(self.usage or {})}
        if result is None:
            fields["failed"] = True
        self.ctx.emit("engine:usage", **fields)


def take_turn(ctx: Context, engine: Any, request: AgentRequest) -> AgentResult:
    """One fresh attempt of the engine; raises LoopError for every way it can fail (R99)."""
    resolved = ctx.resolve_engine(engine)
    with ctx.port.engine_call(request.max_tokens):
        return _turn(ctx, resolved, request)


def _turn(ctx: Context, resolved: Any, request: AgentRequest) -> AgentResult:
    ear = _Ear(ctx, request)
    ctx.notes.inject(request.env)
    result: AgentResult | None = None
    try:
        if ctx.signal.is_set():
            raise EngineError("aborted", "the run was cancelled.")
        given = resolved.run(request, ear.hear, ctx.signal)
        made = asyncio.run(_awaited(given)) if inspect.isawaitable(given) else given
        if not isinstance(made, AgentResult):
            raise EngineError("unknown", f"the engine returned a {type(made).__name__}.")
        final_text(made)
        result = made
    except (Exception, asyncio.CancelledError) as raised:
        raise engine_failure(raised, cancelled=ctx.signal.is_set()) from raised
    finally:
        ear.record(result)
    return result


async def _awaited(value: Any) -> Any:
    return await value
