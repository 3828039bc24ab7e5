"""Which values a quick encoder writes as they have to be written, found without a copy.

It is many times as quick as the writer of canonical texts, and nearly every value is one of these.
Both questions are asked of exact types: what is only like text or like a number takes the long way,
and so does whatever is refused there, with its path.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final

import orjson

from runs.kernel.frozen import MAX_SAFE_INTEGER, FrozenDict, FrozenList

_in_order: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, check_circular=False
).encode
# For what `is_checked`; its numbers are written as Python writes them.
as_given: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
).encode

# Below this mark the order of code points is that of UTF-16 units (gates.md G3).
_FIRST_SURROGATE: Final = "\ud800"
_OBJECTS: Final = frozenset({dict, FrozenDict})
_ARRAYS: Final = frozenset({list, tuple, FrozenList})


def in_order(value: Any) -> str:
    """The canonical text of what `is_plain`."""
    try:
        return orjson.dumps(value, default=_array, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        return _in_order(value)  # it nests deeper than that encoder goes


def as_it_is(value: Any) -> str:
    """What `as_given` writes, for what `is_plain`: the same text in a tenth of the time."""
    try:
        return orjson.dumps(value, default=_array).decode()
    except orjson.JSONEncodeError:
        return as_given(value)


def _array(value: Any) -> Any:
    """What that encoder does not take for an array; it knows tuples, and none made of them."""
    if isinstance(value, FrozenList):
        return tuple(value)
    raise TypeError(type(value).__name__)


def is_plain(value: Any, room: int) -> bool:
    """Whether `in_order` writes the canonical text of it; containers nest at most `room` deep."""
    kind = type(value)
    if kind in _PLAIN:
        return _PLAIN[kind](value)
    if kind is not FrozenDict and kind is not FrozenList:
        return room > 0 and _is_plain_inside(value, kind, room)
    if value.height > room:
        return False
    if value.plain is None:
        # It never changes, and is often written again: in an event, in rows, on a page.
        value.plain = _is_plain_inside(value, kind, room)
    return bool(value.plain)


def _is_plain_inside(value: Any, kind: type, room: int) -> bool:
    if kind in _OBJECTS:
        for key, item in value.items():
            if not (type(key) is str and (key.isascii() or max(key) < _FIRST_SURROGATE)):
                return False
            if not (type(item) is str and item.isascii()) and not is_plain(item, room - 1):
                return False
        return True
    if kind not in _ARRAYS:
        return False
    for item in value:  # noqa: SIM110 - all() would take a third frame for each level
        if not is_plain(item, room - 1):
            return False
    return True


def is_checked(value: Any, room: int) -> bool:
    """Whether `as_given` writes what `snapshot` would hand back: all of it is JSON."""
    kind = type(value)
    if kind in _CHECKED:
        return _CHECKED[kind](value)
    if kind is FrozenDict or kind is FrozenList:
        return bool(value.height <= room)
    if room <= 0:
        return False
    if kind is dict:
        for key, item in value.items():
            if not (type(key) is str and _is_text(key)):
                return False
            if not (type(item) is str and item.isascii()) and not is_checked(item, room - 1):
                return False
        return True
    return kind in _ARRAYS and all(is_checked(item, room - 1) for item in value)


def _is_text(value: str) -> bool:
    """Whether no half of a pair stands alone in it."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_exact(value: int) -> bool:
    return -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER


def _is_written_alike(value: float) -> bool:
    """Whether Python's digits are ECMAScript's: a fraction for which neither takes an exponent."""
    return 1e-4 <= abs(value) < 1e15 and not value.is_integer()


def _always(_: object) -> bool:
    return True


_Leaf = Callable[[Any], bool]
_EITHER: Final[dict[type, _Leaf]] = {
    str: _is_text,
    int: _is_exact,
    bool: _always,
    type(None): _always,
}
_PLAIN: Final[dict[type, _Leaf]] = {**_EITHER, float: _is_written_alike}
_CHECKED: Final[dict[type, _Leaf]] = {**_EITHER, float: math.isfinite}
