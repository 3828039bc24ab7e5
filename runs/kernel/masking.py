"""Values that not everybody who sees a question may read (interactions.md I136).

The presentation of a question declares them: `{"sensitive": ["/password", "/hosts/*/token"]}` are
JSON pointers into its input, where `*` stands for every item of a list and every member of an
object. A masked value is replaced by MASK; digests always cover the true one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

KEY: Final = "sensitive"
MASK: Final = "[masked]"
MAX_POINTERS: Final = 100
MAX_POINTER: Final = 500
_EVERY: Final = "*"
# Where what is declared cannot be read, nobody guesses: the whole value is masked.
_WHOLE: Final = ("",)
_DEEPEST: Final = 64


def fault(presentation: Mapping[str, Any]) -> str:
    """What is wrong with the declaration, in words; empty when nothing is."""
    if KEY not in presentation:
        return ""
    given = presentation[KEY]
    if not isinstance(given, list | tuple) or len(given) > MAX_POINTERS:
        return f"{KEY} is a list of at most {MAX_POINTERS} JSON pointers into the input."
    for one in given:
        if not _is_pointer(one):
            return f"{KEY} holds {one!r:.80}, which is no JSON pointer such as /password."
    return ""


def pointers_of(presentation: object) -> tuple[str, ...]:
    """The declared pointers; the whole input where they cannot be read."""
    if not isinstance(presentation, Mapping) or KEY not in presentation:
        return ()
    return _WHOLE if fault(presentation) else tuple(presentation[KEY])


def masked(value: Any, pointers: Iterable[str]) -> Any:
    """The value with everything at these pointers replaced; the value itself is not changed."""
    for pointer in pointers:
        value = _masked(value, _parts(pointer))
    return value


def is_masked(path: str, pointers: Iterable[str]) -> bool:
    """Whether the value at this JSON pointer, or what it stands in, is masked."""
    at = _parts(path)
    return any(_covers(_parts(pointer), at) for pointer in pointers)


def mask_requests(value: Any) -> Any:
    """Mask the input of every question in the value: of a fact of the record, or of an outcome."""
    return _searched(value, 0)


def _is_pointer(value: object) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= MAX_POINTER
        and (value == "" or value.startswith("/"))
    )


def _parts(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _masked(value: Any, parts: list[str]) -> Any:
    if not parts:
        return MASK
    name, rest = parts[0], parts[1:]
    if isinstance(value, Mapping):
        if name != _EVERY and name not in value:
            return value
        return {
            key: _masked(item, rest) if name in (_EVERY, key) else item
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            _masked(item, rest) if name in (_EVERY, str(index)) else item
            for index, item in enumerate(value)
        ]
    return value


def _covers(parts: Sequence[str], at: Sequence[str]) -> bool:
    """Whether the pointer names the place, or one that the place stands in."""
    return len(parts) <= len(at) and all(
        part in (_EVERY, name) for part, name in zip(parts, at, strict=False)
    )


def _searched(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        if "input" in value and (pointers := pointers_of(value.get("presentation"))):
            return {**value, "input": masked(value["input"], pointers)}
        changed = {name: _searched(item, depth + 1) for name, item in value.items()}
        return changed if any(changed[name] is not value[name] for name in value) else value
    if isinstance(value, list | tuple):
        items = [_searched(item, depth + 1) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else items
    return value
