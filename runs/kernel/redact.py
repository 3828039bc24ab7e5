"""Secret-looking text does not enter an outcome (gates.md G107, runs.md R227)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from runs.kernel.jsonable import JSONValue

REDACTED: Final = "[redacted]"
_SHAPES: Final = (
    re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"),
    re.compile(r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+"),
    re.compile(
        r"\b(?:token|secret|password|api[ _-]?key|authorization|bearer)\b\s*[=:]\s*"
        r"(?:bearer\s+)?[^\s,;\"']+",
        re.IGNORECASE,
    ),
)


def redact(text: str) -> str:
    """The text with key shapes, e-mail addresses and `token=...` replaced."""
    for shape in _SHAPES:
        text = shape.sub(REDACTED, text)
    return text


def redact_json(value: JSONValue) -> JSONValue:
    """The same for every string inside a JSON value; keys stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redact_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_json(item) for item in value]
    return value
