"""Why a message was not taken."""

from __future__ import annotations

from typing import Final

from runs.plaintext import visible

_LONGEST: Final = 300


class NotSent(Exception):
    """The other side did not take the message; `text` is shown to people and holds no secrets."""

    def __init__(self, text: str, *, retryable: bool, hint_ms: int | None = None) -> None:
        self.text = visible(" ".join(text.split()))[:_LONGEST]
        self.retryable = retryable
        self.hint_ms = hint_ms
        super().__init__(self.text)
