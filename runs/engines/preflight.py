"""One tiny live turn that tells whether an engine answers (engines.md E44-E49)."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from runs.kernel.errors import EngineError
from runs.kernel.failures import classify_engine_failure
from runs.kernel.turns import AgentRequest, AgentResult, Engine, Selection, final_text

TIMEOUT_MS: Final = 60_000
MAX_TOKENS: Final = 16
SHOWN: Final = 60
_PROMPT: Final = "Reply with the one word: ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """How an engine did; `failure` is one of the kinds of EngineError when it did not."""

    engine: str
    model: str
    ok: bool
    detail: str
    latency_ms: int
    failure: str | None = None
    effective: Selection | None = None


class _Cancel:
    def __init__(self, outer: Any) -> None:
        self._outer = outer
        self.is_over = False

    def is_set(self) -> bool:
        return self.is_over or (self._outer is not None and bool(self._outer.is_set()))


def preflight_engine(
    engine: Engine, model: str | None = None, *, timeout_ms: int = TIMEOUT_MS, cancel: Any = None
) -> Preflight:
    """Ask the engine for one word; never raises."""
    began = time.monotonic()

    def told(failure: str | None, detail: str, result: AgentResult | None = None) -> Preflight:
        effective = None if result is None else result.effective
        return Preflight(
            engine=str(getattr(engine, "name", type(engine).__qualname__)),
            model=model or (effective.model if effective else None) or "",
            ok=failure is None,
            failure=failure,
            detail=detail,
            latency_ms=round((time.monotonic() - began) * 1000),
            effective=effective,
        )

    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int) or timeout_ms < 1:
        return told("invalid-config", "timeout_ms is no count of 1 or more.")
    call = _Cancel(cancel)
    if call.is_set():
        return told("aborted", "cancelled")
    request = AgentRequest(
        prompt=_PROMPT,
        purpose="preflight",
        model=model,
        max_tokens=MAX_TOKENS,
        timeout_ms=timeout_ms,
        leaf=True,
    )
    came: list[Any] = []
    done = threading.Event()

    def ask() -> None:
        try:
            came.append(_asked(engine, request, call))
        except BaseException as raised:  # noqa: BLE001 - told as a failure
            came.append(raised)
        finally:
            done.set()

    threading.Thread(target=ask, name="preflight", daemon=True).start()
    if not done.wait(timeout_ms / 1000):
        call.is_over = True
        return told("timeout", f"no answer within {timeout_ms} ms.")
    (found,) = came
    if isinstance(found, BaseException):
        kind = "aborted" if call.is_set() else classify_engine_failure(found)
        return told(kind, str(found) or type(found).__name__)
    text = " ".join(final_text(found).split())
    return told(None, text[:SHOWN] or "an empty reply", found)


def _asked(engine: Engine, request: AgentRequest, cancel: Any) -> AgentResult:
    given = engine.run(request, lambda _event: None, cancel)
    result = asyncio.run(_awaited(given)) if inspect.isawaitable(given) else given
    if not isinstance(result, AgentResult):
        raise EngineError("unknown", f"the engine returned a {type(result).__name__}.")
    final_text(result)
    return result


async def _awaited(value: Any) -> Any:
    return await value


def preflight(engines: Iterable[Engine], **options: Any) -> list[Preflight]:
    """Every engine at the same time, in the given order."""
    listed = list(engines)
    with ThreadPoolExecutor(max(1, len(listed)), thread_name_prefix="preflight") as pool:
        return list(pool.map(lambda engine: preflight_engine(engine, **options), listed))


def format_preflight(result: Preflight) -> str:
    """One line: a mark, the engine and its model, the verdict and how long it took."""
    name = f"{result.engine} {result.model}".strip()
    verdict = result.detail if result.ok else f"{result.failure}: {result.detail}"
    mark = "✓" if result.ok else "✗"
    return f"{mark} {name}: {verdict} ({result.latency_ms} ms)"
