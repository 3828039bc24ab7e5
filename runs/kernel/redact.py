"""Secret-looking text does not enter an outcome (gates.md G107, runs.md R227)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from runs.kernel.jsonable import JSONValue

REDACTED: Final = "[redacted]"
# A shorter value is as likely a word of the text ("test", "true", "admin") as a secret.
SHORTEST_SECRET: Final = 6
# What a text must hold, in small letters, before a shape is worth looking for, and the shape.
# Every pattern is bounded or anchored: the time stays linear on text of any length.
KEY_SHAPES: Final = (
    (("sk-",), re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{8,}")),
    (
        ("token", "secret", "passw", "passp", "key", "author", "bearer"),
        re.compile(
            r"(?:token|secret|passw(?:or)?d|passphrase|api[ _-]?key|authorization|bearer)"
            r"[\"']?[ \t]{0,8}[=:][ \t]{0,8}(?:(?:bearer|basic|token)[ \t]{1,8})?"
            r"(?:\"[^\"\n]{1,256}\"|'[^'\n]{1,256}'|[^\s,;\"']+)",
            re.IGNORECASE,
        ),
    ),
)
# No secret, but nobody's to pass on from what a person or a program wrote.
_ADDRESS: Final = (
    ("@",),
    re.compile(
        r"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@"
        r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"
    ),
)
SHAPES: Final = (*KEY_SHAPES, _ADDRESS)


def redact(text: str) -> str:
    """The text with key shapes, e-mail addresses and `token=...` replaced."""
    small = text.lower()
    for hints, shape in SHAPES:
        if any(hint in small for hint in hints):
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
