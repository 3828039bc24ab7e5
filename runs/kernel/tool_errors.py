"""How a call of a tool ends without its result."""

from __future__ import annotations

from typing import Any, Final

from runs.kernel.errors import LoopError
from runs.kernel.jsonable import JSONValue

RETRYABLE: Final = frozenset(
    {"rate_limited", "provider_unavailable", "provider_error", "timeout", "conflict"}
)


class ToolRefused(LoopError):
    """The call did not run: nobody allowed it, its input does not fit, or its tool is not there.

    `reason` is one of the stable words of interactions.md I95, such as `approval_denied`.
    """

    def __init__(self, reason: str, message: str, *, retryable: bool = False) -> None:
        super().__init__("BODY", f"{reason}: {message}", phase="body", retryable=retryable)
        self.reason = reason
        self.text = message

    def to_result(self) -> dict[str, JSONValue]:
        """The same for a model: a result it reads, and no error it works around (I6)."""
        return {"status": "refused", "code": self.reason, "message": self.text}


class ToolFailed(LoopError):
    """The tool ran and did not do what it was called for. Authors of tools raise it.

    `reason` says why in a word; whether another try may go better follows from it, or is said.
    """

    def __init__(
        self, message: str, *, reason: str = "internal", retryable: bool | None = None
    ) -> None:
        again = reason in RETRYABLE if retryable is None else retryable
        super().__init__("BODY", message, phase="body", retryable=again)
        self.reason = reason

    def to_error(self) -> dict[str, Any]:
        """The error as it is stored under the call's key (interactions.md I79)."""
        return {"code": self.reason, "message": self.message, "retryable": self.retryable}

    def to_result(self) -> dict[str, JSONValue]:
        """The same for a model."""
        return {"status": "failed", **self.to_error()}
