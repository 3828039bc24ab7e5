"""Any value of a record as text that stays on its line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from runs.kernel.events import Event
from runs.kernel.moments import milliseconds
from runs.kernel.numbers import number_of

BETWEEN: Final = " \u203a "  # the names of a path
# What ends a line, moves a terminal's cursor or turns the reading order around.
_CONTROLS: Final = re.compile(
    "[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_LONGEST_MS: Final = 253_402_300_800_000  # the year 10000

Wire = Mapping[str, Any]


def wire_of(event: Event | Wire) -> Wire:
    """The event as it goes over the wire; a mapping is taken as that already."""
    if isinstance(event, Event):
        return event.to_wire()
    return event if isinstance(event, Mapping) else {}


def one_line(text: str) -> str:
    """The text with a space for every control character (runs.md R275)."""
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub(" ", text))


def text(value: object) -> str:
    """A text or a number on one line; nothing for what is neither."""
    if isinstance(value, str):
        return one_line(value).strip()
    number = number_of(value)
    return "" if number is None else str(number)


def facts(value: object) -> Wire:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> Sequence[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def path_of(value: object) -> tuple[str, ...]:
    """The names of a path."""
    return tuple(text(name) for name in items(value))


def moment_of(value: object) -> int | None:
    """A time in milliseconds since the epoch, also from the text the API writes."""
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
            value = milliseconds(at if at.tzinfo else at.replace(tzinfo=UTC))
        except (ValueError, OverflowError, OSError):
            return None
    number = number_of(value)
    return None if number is None or not 0 <= number < _LONGEST_MS else int(number)


def joined(*parts: str, by: str = " ") -> str:
    """The parts that say something."""
    return by.join(part for part in parts if part)


def many(count: int, one: str, more: str = "") -> str:
    """A count with its noun: `1 call`, `2 calls`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def span(seconds: float) -> str:
    """Say a number of seconds in the units people use."""
    if seconds < 0.9995:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min"
    return f"{hours // 24} d {hours % 24} h"
