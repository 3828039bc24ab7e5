"""An engine that answers from a function: for tests, examples and work without a network."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from runs.kernel.errors import EngineError
from runs.kernel.jsonable import JSONValue
from runs.kernel.seats import SeatIdentity, TeamSeat, model_identity
from runs.kernel.turns import AgentRequest, AgentResult, OnEvent, Part, Selection

MODEL: Final = "mock"
USAGE: Final[Mapping[str, JSONValue]] = {"kind": "reported", "inputTokens": 10, "outputTokens": 5}
Responder = Callable[..., Any]


class MockEngine:
    """Answers with what `responder` returns (engines.md E40, E41).

    The responder gets the request, unless it takes no parameters, and returns text or a mapping
    `{text, usage?, model?}`; it may be async, and may raise EngineError. `requests` keeps what
    was asked.
    """

    def __init__(self, responder: Responder, *, name: str = MODEL) -> None:
        self.name = name
        self.requests: list[AgentRequest] = []
        self._responder = responder
        self._takes_request = _takes_something(responder)

    def run(
        self, request: AgentRequest, on_event: OnEvent, cancel: Any
    ) -> AgentResult | Awaitable[AgentResult]:
        """One answer; awaitable where the responder's is."""
        if cancel.is_set():
            raise EngineError("aborted", "the run was cancelled.")
        self.requests.append(request)
        given = self._responder(request) if self._takes_request else self._responder()
        if inspect.isawaitable(given):
            return self._later(given, request, on_event)
        return self._answered(given, request, on_event)

    async def _later(
        self, given: Awaitable[Any], request: AgentRequest, on_event: OnEvent
    ) -> AgentResult:
        return self._answered(await given, request, on_event)

    def _answered(self, given: Any, request: AgentRequest, on_event: OnEvent) -> AgentResult:
        reply = dict(given) if isinstance(given, Mapping) else {"text": given}
        text = reply.get("text")
        if not isinstance(text, str):
            raise TypeError(f"a MockEngine answers with text, not {type(text).__name__}.")
        asked = request.model or MODEL
        model = str(reply.get("model") or asked)
        usage = dict(reply.get("usage") or USAGE)
        if text:
            on_event({"kind": "text", "delta": text})
        on_event({"kind": "usage", "usage": usage, "model": model})
        return AgentResult(
            parts=(Part(text=text, final=True),),
            usage=usage,
            requested=Selection(adapter=MODEL, model=asked, effort=request.effort),
            effective=Selection(adapter=MODEL, model=model, effort=request.effort),
            stop_reason="end_turn",
        )


def _takes_something(responder: Responder) -> bool:
    try:
        return bool(inspect.signature(responder).parameters)
    except ValueError:
        # A built-in that does not say what it takes.
        return True


def mock_verdict(verdict: str, confidence: float, reason: str = "mock") -> MockEngine:
    """An engine that gives this verdict to every question (engines.md E42)."""
    told = json.dumps({"verdict": verdict, "confidence": confidence, "reason": reason})
    return MockEngine(lambda: told)


def mock_seat(model: str, responder: Responder, *, tools: tuple[str, ...] = ("Read",)) -> TeamSeat:
    """A seat in which a MockEngine answers as the model `[provider/]model`."""
    provider, family = model_identity(model)
    identity = SeatIdentity(
        adapter=MODEL, provider=provider or MODEL, model_family=family, model=model, tools=tools
    )
    return TeamSeat(engine=MockEngine(responder), identity=identity)
