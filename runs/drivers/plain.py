"""What a step hands over, as JSON can hold it: times as text, errors left out (runs.md R251)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from runs.kernel.jsonable import MAX_DEPTH, FrozenDict, FrozenList

_LEFT_OUT: Final = object()


def plain(value: Any) -> Any:
    """The value with every date as ISO text and without the errors in it, at any depth.

    What is no JSON for another reason stays as it is, a value that contains itself too: whoever
    freezes it says so.
    """
    found = _plain(value, frozenset())
    return None if found is _LEFT_OUT else found


def _plain(value: Any, above: frozenset[int]) -> Any:
    if isinstance(value, FrozenDict | FrozenList):
        return value
    if isinstance(value, BaseException):
        return _LEFT_OUT
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, Mapping | list | tuple):
        return value
    if id(value) in above or len(above) > MAX_DEPTH:
        return value
    inside = above | {id(value)}
    if isinstance(value, Mapping):
        members = {key: _plain(item, inside) for key, item in value.items()}
        return {key: item for key, item in members.items() if item is not _LEFT_OUT}
    items = [_plain(item, inside) for item in value]
    return [item for item in items if item is not _LEFT_OUT]


def _moment(at: datetime) -> str:
    if at.tzinfo is None:
        return at.isoformat(timespec="milliseconds")
    text = at.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
