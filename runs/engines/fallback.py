"""Several engines as one: the next is asked when one is out of service (engines.md E51-E53)."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runs.kernel.errors import EngineError
from runs.kernel.failures import LANE_DEAD_FAILURES, classify_engine_failure
from runs.kernel.turns import UNKNOWN_USAGE, AgentRequest, AgentResult, Engine, OnEvent

OnFallback = Callable[[str, str, str, BaseException], Any]


def fallback_engine(
    engines: Iterable[Engine],
    *,
    on: Iterable[str] | None = None,
    on_fallback: OnFallback | None = None,
) -> Engine:
    """An engine that asks the given ones in order.

    A failure whose kind is in `on` (LANE_DEAD_FAILURES without it) takes that engine out for as
    long as this one lives, and the next is asked; `on_fallback(from, to, failure, error)` hears of
    it. Every other failure, and a cancel, goes to the caller. Raises ValueError for no engines.
    """
    chain = tuple(engines)
    if not chain:
        raise ValueError("fallback_engine() takes one engine or more.")
    kinds = LANE_DEAD_FAILURES if on is None else frozenset(on)
    return _Chain(chain, kinds, on_fallback)


class _Chain:
    def __init__(
        self, chain: tuple[Engine, ...], on: frozenset[str], on_fallback: OnFallback | None
    ) -> None:
        self.name = " > ".join(engine.name for engine in chain)
        self._chain = chain
        self._on = on
        self._on_fallback = on_fallback
        self._dead: set[int] = set()
        self._lock = threading.Lock()

    async def run(self, request: AgentRequest, on_event: OnEvent, cancel: Any) -> AgentResult:
        """The answer of the first that is in service; each that failed tells what it used."""
        failed: EngineError | None = None
        for place, engine in self._alive():
            ear = _Ear(on_event, request)
            try:
                given = engine.run(request, ear.hear, cancel)
                return await given if inspect.isawaitable(given) else given
            except (Exception, asyncio.CancelledError) as error:
                kind = classify_engine_failure(error)
                if cancel.is_set() or kind not in self._on:
                    raise
                ear.failed()
                failed = error if isinstance(error, EngineError) else EngineError(kind, str(error))
                self._bury(place, kind, error)
        raise failed or EngineError("unknown", f"no engine of {self.name} is in service any more.")

    def _alive(self) -> list[tuple[int, Engine]]:
        with self._lock:
            dead = set(self._dead)
        return [(at, engine) for at, engine in enumerate(self._chain) if at not in dead]

    def _bury(self, place: int, kind: str, error: BaseException) -> None:
        with self._lock:
            self._dead.add(place)
        following = [engine for at, engine in self._alive() if at > place]
        if self._on_fallback is not None and following:
            self._on_fallback(self._chain[place].name, following[0].name, kind, error)


class _Ear:
    """Passes on what one engine tells; if it fails, its usage is told once, marked as failed."""

    def __init__(self, on_event: OnEvent, request: AgentRequest) -> None:
        self._on_event = on_event
        self._usage: dict[str, Any] = {
            "kind": "usage",
            "usage": dict(UNKNOWN_USAGE),
            "model": request.model or "",
        }

    def hear(self, event: Mapping[str, Any]) -> None:
        if event.get("kind") == "usage":
            self._usage = dict(event)
        self._on_event(event)

    def failed(self) -> None:
        self._on_event({**self._usage, "failed": True})
