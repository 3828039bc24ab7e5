"""What counts as JSON here, and its frozen form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn, Self, TypeAlias, cast

JSONValue: TypeAlias = (
    bool | int | float | str | Sequence["JSONValue"] | Mapping[str, "JSONValue"] | None
)

MAX_DEPTH = 256
MAX_SAFE_INTEGER = 2**53 - 1

_At: TypeAlias = "tuple[_At, str | int] | None"


class JsonValueError(ValueError):
    """The value is not JSON as the canonical text can carry it."""

    code = "INVALID_JSON_VALUE"

    def __init__(self, reason: str, path: str = "") -> None:
        self.reason = reason
        self.path = path
        super().__init__(f"{path or '<root>'}: {reason}.")

    def __reduce__(self) -> tuple[type[JsonValueError], tuple[str, str]]:
        return (type(self), (self.reason, self.path))


def _refuse(_self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError("This value is frozen. Change a copy made with thaw().")


class FrozenDict(dict[str, JSONValue]):
    """A JSON object that was checked once and never changes."""

    __slots__ = ("__weakref__", "height", "plain")
    height: int
    plain: bool | None
    """Whether it is written the quick way, see plain.py; None as long as nobody asked."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        checked = cast(FrozenDict, snapshot(dict(*args, **kwargs)))
        dict.update(self, checked)
        self.height, self.plain = checked.height, None

    @classmethod
    def _checked(cls, items: dict[str, JSONValue], height: int) -> Self:
        frozen = cls.__new__(cls)
        dict.update(frozen, items)
        frozen.height, frozen.plain = height, None
        return frozen

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (snapshot, (thaw(self),))


class FrozenList(tuple[JSONValue, ...]):  # noqa: SLOT001 - a tuple takes no named slots
    """A JSON array that was checked once and never changes; equals a list of the same values."""

    height: int
    plain: bool | None

    def __new__(cls, items: Iterable[JSONValue] = ()) -> Self:
        checked = cast(FrozenList, snapshot(list(items)))
        return cls._checked(checked, checked.height)

    @classmethod
    def _checked(cls, items: Iterable[JSONValue], height: int) -> Self:
        frozen = super().__new__(cls, items)
        frozen.height, frozen.plain = height, None
        return frozen

    def __eq__(self, other: object) -> bool:
        return super().__eq__(tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (snapshot, (thaw(self),))


def snapshot(value: object, *, max_depth: int = MAX_DEPTH) -> JSONValue:
    """Check a value and hand back a frozen copy; a value frozen before comes back as it is."""
    return _freeze(value, None, 0, max_depth, set())


def frozen_object(name: str, value: object, *, max_depth: int = MAX_DEPTH) -> FrozenDict:
    """A frozen JSON object, or ValueError naming what was not one."""
    frozen = snapshot(value, max_depth=max_depth)
    if not isinstance(frozen, FrozenDict):
        raise ValueError(f"{name} is not a JSON object.")  # noqa: TRY004 - the contract's error
    return frozen


def thaw(value: JSONValue) -> Any:
    """A plain copy of a JSON value, made of dicts and lists the caller may change."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    return value


def _freeze(value: object, at: _At, level: int, limit: int, above: set[int]) -> JSONValue:
    if level > limit:
        raise JsonValueError(too_deep(limit), _pointer(at))
    if not isinstance(value, dict | list | tuple):
        return _freeze_scalar(value, at)
    if isinstance(value, FrozenDict | FrozenList):
        if level + value.height > limit:
            raise JsonValueError(too_deep(limit), _pointer(at))
        return value
    if id(value) in above:
        raise JsonValueError("the value contains itself", _pointer(at))
    above.add(id(value))
    frozen = _freeze_container(value, at, level + 1, limit, above)
    above.discard(id(value))
    return frozen


def _freeze_scalar(value: object, at: _At) -> JSONValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        raise JsonValueError(f"{type(value).__name__} is an enum member, not JSON", _pointer(at))
    if isinstance(value, str):
        return _text(value, at)
    if isinstance(value, int):
        return _integer(value, at)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise JsonValueError("the number is not finite", _pointer(at))
        return float(value)
    raise JsonValueError(f"{type(value).__name__} is not a JSON type", _pointer(at))


def _freeze_container(
    value: dict[Any, Any] | list[Any] | tuple[Any, ...],
    at: _At,
    level: int,
    limit: int,
    above: set[int],
) -> JSONValue:
    height, has_room = 0, level <= limit
    if isinstance(value, dict):
        members: dict[str, JSONValue] = {}
        for key, item in value.items():
            name = key if type(key) is str and key.isascii() else _key(key, at)
            if has_room and _stays(item):
                members[name] = item
                height = height or 1
            else:
                members[name] = frozen = _freeze(item, (at, name), level, limit, above)
                height = max(height, 1 + getattr(frozen, "height", 0))
        return FrozenDict._checked(members, height)
    items: list[JSONValue] = []
    for index, item in enumerate(value):
        if has_room and _stays(item):
            items.append(item)
            height = height or 1
        else:
            frozen = _freeze(item, (at, index), level, limit, above)
            items.append(frozen)
            height = max(height, 1 + getattr(frozen, "height", 0))
    return FrozenList._checked(items, height)


def _stays(item: Any) -> bool:
    """Whether it is JSON as it is, as nearly every item is; asked of exact types."""
    kind = type(item)
    if kind is str:
        return bool(item.isascii())
    if kind is int:
        return bool(-MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER)
    return kind is bool or item is None


def _key(key: object, at: _At) -> str:
    if not isinstance(key, str) or isinstance(key, Enum):
        raise JsonValueError(f"an object key is {type(key).__name__}, not text", _pointer(at))
    return _text(key, at)


def _text(value: str, at: _At) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise JsonValueError("text holds an unpaired surrogate", _pointer(at)) from error
    return value if type(value) is str else str.__str__(value)


def _integer(value: int, at: _At) -> int:
    if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        try:
            exact = int(float(value)) == value
        except OverflowError:
            exact = False
        if not exact:
            raise JsonValueError("no double holds this integer exactly", _pointer(at))
    return int(value)


def too_deep(limit: int) -> str:
    """The reason given when a value nests past the limit."""
    return f"the value goes more than {limit} levels deep"


def _pointer(at: _At) -> str:
    parts: list[str] = []
    while at is not None:
        at, key = at
        parts.append(str(key).replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{part}" for part in reversed(parts))
