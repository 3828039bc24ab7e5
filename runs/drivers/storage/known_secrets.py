"""Known secrets are looked for wherever they might enter a store (graph.md K69, K81)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from runs.drivers.errors import StorageError

REDACTED: Final = "[redacted]"


class KnownSecrets:
    """Values a host has said are secret; they themselves are never written anywhere."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        # The longest first: one may hold another.
        self._values = sorted({value for value in values if value}, key=len, reverse=True)

    def __len__(self) -> int:
        return len(self._values)

    def refuse_in(self, value: Any, content: bytes = b"") -> None:
        """Raise KNOWN_SECRET when one occurs in the bytes, or in a text or key of the value."""
        if any(secret.encode() in content for secret in self._values):
            raise _found()
        for text in _texts(value):
            if any(secret in text for secret in self._values):
                raise _found()

    def redacted(self, text: str) -> str:
        """The text with each secret replaced."""
        for secret in self._values:
            text = text.replace(secret, REDACTED)
        return text


def _found() -> StorageError:
    return StorageError("KNOWN_SECRET", "a known secret was kept out of the store.")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
