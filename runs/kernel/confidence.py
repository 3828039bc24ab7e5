"""Reads what a model or a person wrote about its own certainty; every reader is total."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

DecisionMode = Literal["closing", "last-match"]
# Emphasis, quotes and list marks that surround a token or a value in Markdown.
_DRESS: Final = " \t*_`>#\"'"
_LONGEST_LINE: Final = 10_000
_NUMBER: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,12})?|\.[0-9]{1,12})\s{0,8}(%?)")
_TRIES: Final = 1_000


def last_decision_line(
    text: str,
    token: str,
    values: Sequence[str] | None = None,
    *,
    mode: DecisionMode = "closing",
) -> str | None:
    """The value of `token: value` or `<token>value</token>` (runs.md R101).

    `closing` reads the last line that is not blank, `last-match` the last line that holds the
    token. Case does not matter; with `values` the canonical spelling is returned and anything
    else is None.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in reversed(lines[-1:] if mode == "closing" else lines):
        found = _value_in(line, token)
        if found is not None:
            return found if values is None else _canonical(found, values)
    return None


def _value_in(line: str, token: str) -> str | None:
    if len(line) > _LONGEST_LINE:
        line = line[-_LONGEST_LINE:]
    _, inside = tagged(line, token)
    if inside is not None:
        return _undressed(inside)
    key, colon, value = line.partition(":")
    if colon and key.lstrip("-+").strip(_DRESS).lower() == token.lower():
        return _undressed(value)
    return None


def tagged(text: str, token: str) -> tuple[str, str | None]:
    """What stands before the last `<token>...</token>`, and what is inside it (runs.md R98)."""
    small, name = text.lower(), token.lower()
    end = small.rfind(f"</{name}>")
    start = small.rfind(f"<{name}>", 0, end) if end >= 0 else -1
    if start < 0:
        return text, None
    return text[:start], text[start + len(name) + 2 : end].strip()


def _undressed(value: str) -> str | None:
    return value.strip(_DRESS) or None


def _canonical(found: str, values: Iterable[str]) -> str | None:
    plain = found.rstrip(".!,;").strip(_DRESS).lower()
    return next((value for value in values if value.lower() in (plain, found.lower())), None)


def confidence_from_text(text: str, token: str = "confidence") -> float | None:  # noqa: S107 - the word, no secret
    """The confidence in the last line that names one, from 0 to 1 (runs.md R102).

    `N%` or a number above 1 is divided by 100; outside 0..1 or unreadable is None.
    """
    found = last_decision_line(text, token, mode="last-match")
    return None if found is None else fraction_in(found)


def fraction_in(value: str) -> float | None:
    """`0.9`, `90%` and `90` as 0.9; None for what is no share."""
    match = _NUMBER.fullmatch(value.rstrip(".,; "))
    if match is None:
        return None
    number = float(match[1])
    if match[2] or number > 1:
        number /= 100
    return number if 0 <= number <= 1 else None


def is_share(value: object) -> bool:
    """Whether the value is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def share(value: object) -> float:
    """The number when it is one from 0 to 1, else 0: what cannot be read convinces nobody."""
    return float(value) if is_share(value) else 0.0  # type: ignore[arg-type]  # is_share looked


def object_with(text: str, key: str) -> Mapping[str, Any] | None:
    """The first balanced JSON object in the text that has the key (runs.md R96)."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(_TRIES):
        if at < 0:
            return None
        try:
            value, _end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and key in value:
            return value
        at = text.find("{", at + 1)
    return None


def geometric_mean(scores: Sequence[float]) -> float:
    """The geometric mean of shares; one zero makes it zero (runs.md R97)."""
    if not scores or min(scores) <= 0:
        return 0.0
    return min(1.0, math.exp(sum(map(math.log, scores)) / len(scores)))
