"""Have an engine do a turn for a step, and record what it cost."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Final

from runs.drivers.context import Context
from runs.kernel.jsonable import JSONValue
from runs.kernel.turns import (
    RECORDED_ENGINE_USAGE,
    UNKNOWN_USAGE,
    AgentRequest,
    AgentResult,
    EngineError,
    OnEvent,
    engine_failure,
    final_text,
)

_LOOK_SECONDS: Final = 0.02


class _Ear:
    """Hears one attempt; its usage is recorded once, whatever the engine says (engines.md E6).

    Text and thinking go to whoever listens now, scrubbed piece by piece, and are not kept.

    An engine that tries several others tells the usage of each that failed, marked so (E52).
    """

    def __init__(self, ctx: Context, request: AgentRequest, record_as: Mapping[str, str]) -> None:
        self.ctx = ctx
        self.model = request.model or ""
        self.record_as = record_as
        self.usage: dict[str, Any] | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._beside: ThreadPoolExecutor | None = None

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take an event of the engine."""
        fields = {key: value for key, value in event.items() if key != "kind"}
        with self._lock:
            if self._closed:
                return
            if event["kind"] in ("text", "thinking"):
                told = self.ctx.scrubbed({"delta": str(event.get("delta", ""))})
                self.ctx.port.stream(f"engine:{event['kind']}", self.ctx.path, told)
            elif event["kind"] == "tool":
                self._tell("engine:tool", fields)
            elif event["kind"] == "usage":
                if self.usage is not None and self.usage.get("failed") is True:
                    self._emit(self.usage)
                self.usage = fields

    def record(self, result: AgentResult | None) -> None:
        """Record the usage; what is not known is not invented (runs.md R212)."""
        with self._lock:
            self._closed = True
            if self._beside is not None:
                self._beside.submit(self.ctx.port.leave_thread)
                self._beside.shutdown()
                self._beside = None
        usage: Mapping[str, JSONValue] = UNKNOWN_USAGE if result is None else result.usage
        model = self.model
        if result is not None and result.effective is not None:
            model = result.effective.model or model
        heard = dict(self.usage or {})
        if result is None:
            heard["failed"] = True
        elif heard.pop("failed", False) is True:
            # Told of an attempt before this one, whose own usage is in its result.
            self._emit({**heard, "failed": True})
            heard = {}
        fields = {"model": model, "usage": dict(usage), **heard}
        self._emit(fields)
        if result is not None:
            self._answered(str(fields["model"]))

    def _emit(self, fields: Mapping[str, Any]) -> None:
        self._tell("engine:usage", {"model": self.model, **fields, **self.record_as})

    def _tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Record an event; from the loop of an async engine on a thread that may wait for it."""
        if not _is_in_a_loop():
            self.ctx.emit(kind, **fields)
            return
        if self._beside is None:
            self._beside = ThreadPoolExecutor(1, thread_name_prefix="engine-events")
        self._beside.submit(partial(self.ctx.emit, kind, **fields)).result()

    def _answered(self, model: str) -> None:
        answer = {"model": model, "path": list(self.ctx.path), **self.record_as}
        self.ctx.state.setdefault(RECORDED_ENGINE_USAGE, []).append(answer)


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _CallCancel:
    """The cancel of one call: the run's, or that the call's time is over."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self.is_over = False

    def is_set(self) -> bool:
        return self.is_over or bool(self._run.is_set())

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep that a cancel ends early; True when cancelled."""
        end = None if seconds is None else time.monotonic() + seconds
        while not self.is_set() and (end is None or time.monotonic() < end):
            time.sleep(_LOOK_SECONDS)
        return self.is_set()


def take_turn(
    ctx: Context, engine: Any, request: AgentRequest, *, record_as: Mapping[str, str] | None = None
) -> AgentResult:
    """One fresh attempt of the engine; raises LoopError for every way it can fail (R99).

    `record_as` says in which `role`, and for which `stage`, it answers (R50).
    """
    resolved = ctx.resolve_engine(engine)
    with ctx.port.engine_call(request.max_tokens):
        return _turn(ctx, resolved, request, dict(record_as or {}))


def _turn(
    ctx: Context, resolved: Any, request: AgentRequest, record_as: Mapping[str, str]
) -> AgentResult:
    ear = _Ear(ctx, request, record_as)
    ctx.notes.inject(request.env)
    result: AgentResult | None = None
    try:
        if ctx.signal.is_set():
            raise EngineError("aborted", "the run was cancelled.")
        if request.timeout_ms is None:
            result = _ask(resolved, request, ear.hear, ctx.signal)
        else:
            result = _ask_in_time(ctx, resolved, request, ear.hear)
    except (Exception, asyncio.CancelledError) as raised:
        raise engine_failure(raised, cancelled=ctx.signal.is_set()) from raised
    finally:
        ear.record(result)
    return result


def _ask(resolved: Any, request: AgentRequest, hear: OnEvent, cancel: Any) -> AgentResult:
    given = resolved.run(request, hear, cancel)
    made = asyncio.run(_awaited(given)) if inspect.isawaitable(given) else given
    if not isinstance(made, AgentResult):
        raise EngineError("unknown", f"the engine returned a {type(made).__name__}.")
    final_text(made)
    return made


def _ask_in_time(ctx: Context, resolved: Any, request: AgentRequest, hear: OnEvent) -> AgentResult:
    """Wait for the answer until its time and the grace after it are over (runs.md R44, R45).

    An engine that does not heed its cancel is left behind on its thread: the step goes on.
    """
    assert request.timeout_ms is not None
    cancel, done = _CallCancel(ctx.signal), threading.Event()
    came: list[AgentResult | BaseException] = []

    def ask() -> None:
        try:
            came.append(_ask(resolved, request, hear, cancel))
        except BaseException as raised:  # noqa: BLE001 - it is raised on the step's own thread
            came.append(raised)
        finally:
            ctx.port.leave_thread()
            done.set()

    began = time.monotonic()
    most = (request.timeout_ms + (request.timeout_grace_ms or 0)) / 1000
    # What its lines of the log and its spans are about is known there too.
    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(ask,), name="engine", daemon=True).start()
    if not done.wait(most):
        cancel.is_over = True
        raise EngineError("timeout", f"no answer within {round(most * 1000)} ms.")
    (found,) = came
    if isinstance(found, BaseException):
        raise found
    late = time.monotonic() - began > request.timeout_ms / 1000
    return replace(found, late=True) if late else found


async def _awaited(value: Any) -> Any:
    return await value
