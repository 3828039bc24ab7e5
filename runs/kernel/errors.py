"""The one error a step may end with, and what kind of error may be tried again."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from runs.kernel.jsonable import JSONValue


class ErrorCode(StrEnum):
    """Public error codes (runs.md R26)."""

    ENGINE = "ENGINE"
    TIMEOUT = "TIMEOUT"
    ABORTED = "ABORTED"
    VALIDATION = "VALIDATION"
    WRITE_BOUNDARY = "WRITE_BOUNDARY"
    CONFIG = "CONFIG"
    BUDGET = "BUDGET"
    RATE_LIMIT = "RATE_LIMIT"
    QUOTA = "QUOTA"
    BODY = "BODY"
    UNKNOWN = "UNKNOWN"


PHASES: Final = ("start", "body", "until", "stopOn", "review", "engine")
INFRASTRUCTURE: Final = frozenset({"ENGINE", "TIMEOUT", "RATE_LIMIT", "QUOTA", "BUDGET"})
LIMITS: Final = frozenset({"RATE_LIMIT", "QUOTA", "BUDGET"})
_RETRYABLE: Final = frozenset({"ENGINE", "TIMEOUT", "RATE_LIMIT"})
ENGINE_FAILURES: Final = (
    *("auth", "billing", "missing-cli", "model-unavailable", "invalid-config"),
    *("rate-limit", "quota", "transient", "timeout", "aborted", "unknown"),
)
_ENGINE_CODES: Final = {
    "rate-limit": ErrorCode.RATE_LIMIT,
    "quota": ErrorCode.QUOTA,
    "timeout": ErrorCode.TIMEOUT,
    "aborted": ErrorCode.ABORTED,
    "invalid-config": ErrorCode.CONFIG,
}
# A second try meets the same login, bill, program or model.
_LASTING: Final = frozenset({"auth", "billing", "missing-cli", "model-unavailable"})


class LoopError(Exception):
    """A typed failure of a step or a declaration (runs.md R25-R28)."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        phase: str | None = None,
        path: tuple[str, ...] | None = None,
        iteration: int | None = None,
        cause: BaseException | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
        reset_at: int | None = None,
        engine_failure: str | None = None,
    ) -> None:
        if phase is not None and phase not in PHASES:
            raise ValueError(f"phase {phase!r} is none of {', '.join(PHASES)}.")
        super().__init__(message)
        self.code: str = ErrorCode(code).value
        self.message = message
        self.phase = phase
        self.path = None if path is None else tuple(path)
        self.iteration = iteration
        self.retry_after_ms = retry_after_ms
        self.reset_at = reset_at
        self.engine_failure = engine_failure
        self.retryable = self._default_retryable() if retryable is None else retryable
        if cause is not None:
            self.__cause__ = cause

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], LoopError], tuple[dict[str, Any]]]:
        return (_from_json, (self.to_json(),))

    def _default_retryable(self) -> bool:
        if self.code == ErrorCode.QUOTA:
            return self.retry_after_ms is not None or self.reset_at is not None
        return self.code in _RETRYABLE

    def to_json(self) -> dict[str, JSONValue]:
        """The wire form; the cause stays in the process (runs.md R27)."""
        wire: dict[str, JSONValue] = {
            "name": "LoopError",
            "code": self.code,
            "message": self.message,
        }
        if self.phase is not None:
            wire["phase"] = self.phase
        if self.path is not None:
            wire["path"] = list(self.path)
        if self.iteration is not None:
            wire["iteration"] = self.iteration
        wire["retryable"] = self.retryable
        if self.retry_after_ms is not None:
            wire["retryAfterMs"] = self.retry_after_ms
        if self.reset_at is not None:
            wire["resetAt"] = self.reset_at
        if self.engine_failure is not None:
            wire["engineFailure"] = self.engine_failure
        return wire


class DeclarationError(LoopError, TypeError):
    """A shape that cannot be what its author wrote (design D21)."""

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__("CONFIG", message, **more)


class EngineError(Exception):
    """An engine failed; `kind` says how (engines.md E17, E18). Times in milliseconds."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retry_after_ms: int | None = None,
        reset_at: int | None = None,
    ) -> None:
        if kind not in ENGINE_FAILURES:
            known = ", ".join(ENGINE_FAILURES)
            raise ValueError(f"the kind {kind!r} of an engine error is none of {known}.")
        super().__init__(message)
        self.kind = kind
        self.retry_after_ms = retry_after_ms
        self.reset_at = reset_at


def _from_json(wire: dict[str, Any]) -> LoopError:
    return LoopError(
        wire["code"],
        wire["message"],
        phase=wire.get("phase"),
        path=wire.get("path"),
        iteration=wire.get("iteration"),
        retryable=wire["retryable"],
        retry_after_ms=wire.get("retryAfterMs"),
        reset_at=wire.get("resetAt"),
        engine_failure=wire.get("engineFailure"),
    )


def as_loop_error(
    error: BaseException, *, fallback: str = "UNKNOWN", phase: str | None = None
) -> LoopError:
    """The same object for a LoopError, otherwise one that keeps the exception's text (R29).

    An engine's failure has a code of its own where its kind has one, and keeps its retry hints.
    """
    if isinstance(error, LoopError):
        return error
    text = str(error) or type(error).__name__
    if not isinstance(error, EngineError):
        return LoopError(fallback, text, phase=phase, cause=error)
    return LoopError(
        _ENGINE_CODES.get(error.kind, fallback),
        text,
        phase=phase,
        cause=error,
        retryable=False if error.kind in _LASTING else None,
        retry_after_ms=error.retry_after_ms,
        reset_at=error.reset_at,
        engine_failure=error.kind,
    )
