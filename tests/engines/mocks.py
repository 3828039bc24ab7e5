"""An engine for tests that says what it is told and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runs.kernel.jsonable import JSONValue
from runs.kernel.turns import AgentRequest, AgentResult, Selection


class SayingEngine:
    """Replies with the text, or with what the function makes of the request; raises errors."""

    name = "saying"

    def __init__(
        self,
        reply: str | Exception | Callable[[AgentRequest], Any],
        *,
        events: tuple[Mapping[str, Any], ...] = (),
    ) -> None:
        self.reply = reply
        self.events = events
        self.asked: list[AgentRequest] = []

    def run(self, request: AgentRequest, on_event: Any, cancel: Any) -> Any:
        self.asked.append(request)
        for event in self.events:
            on_event(event)
        if isinstance(self.reply, Exception):
            raise self.reply
        made = self.reply(request) if callable(self.reply) else self.reply
        return said(made) if isinstance(made, str) else made


class LaterEngine(SayingEngine):
    """The same, awaited."""

    async def run(self, request: AgentRequest, on_event: Any, cancel: Any) -> Any:
        return super().run(request, on_event, cancel)


def said(text: str) -> AgentResult:
    """A result whose only part is the text."""
    usage: dict[str, JSONValue] = {"kind": "reported", "inputTokens": 10, "outputTokens": 5}
    effective = Selection(adapter="saying", model="say-1")
    return AgentResult.saying(text, usage=usage, effective=effective)
