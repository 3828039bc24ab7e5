"""What differs between two values of the same gate, place by place."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gates.evidence.masking import MASK, is_masked
from runs.kernel.jsonable import canonical_json, json_equal
from runs.plaintext import visible

MAX_CHANGES: Final = 200
# Lines compared on one page, both sides together: more are shown as two texts.
MAX_LINES: Final = 1_200
# Items of two lists that are looked at for those which only moved.
MAX_ITEMS: Final = 600
_MAX_SHOWN: Final = 2_000
_LONG: Final = 120
_encode: Final = json.JSONEncoder(sort_keys=True).encode
_CONTEXT: Final = 3


@dataclass(frozen=True, slots=True)
class Line:
    """One line of two texts that are compared: "-", "+", " ", or "…" for lines left out."""

    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """One place that differs; None stands for a side that has nothing there.

    Long texts are compared line by line in `lines`.
    """

    path: str
    before: str | None
    after: str | None
    lines: tuple[Line, ...] = ()


class _Nothing:
    """What a side has at a place that it does not have."""


_NOTHING: Final = _Nothing()
Place = tuple[str, Any, Any]


def changes_between(before: Any, after: Any, hidden: Iterable[str] = ()) -> list[Change]:
    """The differing places in order, at most MAX_CHANGES of them; values at `hidden` are masked."""
    found: list[Change] = []
    pointers = tuple(hidden)
    lines_left = MAX_LINES
    for path, old, new in _differing(before, after, ""):
        if len(found) == MAX_CHANGES:
            found.append(Change("…", None, None))
            break
        change = _change(path, old, new, pointers, lines_left)
        lines_left -= len(change.lines)
        found.append(change)
    return found


def _change(path: str, old: Any, new: Any, hidden: Sequence[str], lines_left: int) -> Change:
    if hidden and is_masked(path, hidden):
        shown = [None if one is _NOTHING else MASK for one in (old, new)]
        return Change(path or "/", shown[0], shown[1])
    lines: tuple[Line, ...] = ()
    if isinstance(old, str) and isinstance(new, str) and _is_long(old) and _is_long(new):
        lines = compared(old, new, lines_left)
    return Change(path or "/", _shown(old), _shown(new), lines)


def _is_long(text: str) -> bool:
    return "\n" in text or len(text) > _LONG


def compared(before: str, after: str, at_most: int = MAX_LINES) -> tuple[Line, ...]:
    """Two texts line by line, with a few lines around each change; nothing where there are many."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > at_most:
        return ()
    found: list[Line] = []
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        if found or group[0][1] > 0:
            found.append(Line("…", ""))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                found += [Line(" ", _line(text)) for text in old[old_from:old_to]]
                continue
            found += [Line("-", _line(text)) for text in old[old_from:old_to]]
            found += [Line("+", _line(text)) for text in new[new_from:new_to]]
    return tuple(found)


def _line(text: str) -> str:
    return visible(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")


def _differing(before: Any, after: Any, path: str) -> Iterator[Place]:
    if before is after or _same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            inner = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            yield from _pair(before.get(key, _NOTHING), after.get(key, _NOTHING), inner)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _listed(before, after, path)
    else:
        yield path, before, after


def _pair(before: Any, after: Any, path: str) -> Iterator[Place]:
    if before is _NOTHING or after is _NOTHING:
        yield path, before, after
    else:
        yield from _differing(before, after, path)


def _listed(before: list[Any], after: list[Any], path: str) -> Iterator[Place]:
    """Item by item; what both begin and end with alike is no change, however it moved."""
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and _same(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and _same(before[-1 - end], after[-1 - end]):
        end += 1
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    for old_from, old_to, new_from, new_to in _unlike(old, new):
        for step in range(max(old_to - old_from, new_to - new_from)):
            is_old, is_new = old_from + step < old_to, new_from + step < new_to
            # What is gone is named by its old place, everything else by the new one.
            place = start + (new_from if is_new else old_from) + step
            yield from _pair(
                old[old_from + step] if is_old else _NOTHING,
                new[new_from + step] if is_new else _NOTHING,
                f"{path}/{place}",
            )


def _unlike(old: list[Any], new: list[Any]) -> Iterator[tuple[int, int, int, int]]:
    """The stretches that differ; of long lists the whole is one, item against item."""
    if len(old) + len(new) > MAX_ITEMS:
        yield 0, len(old), 0, len(new)
        return
    keys = [[_encode(item) for item in items] for items in (old, new)]
    for tag, *places in difflib.SequenceMatcher(None, keys[0], keys[1]).get_opcodes():
        if tag != "equal":
            yield places[0], places[1], places[2], places[3]


def _same(before: Any, after: Any) -> bool:
    """Equal as JSON. What Python calls unlike is so; what it calls alike may be 1 beside true."""
    if before != after:
        return False
    return _encode(before) == _encode(after) or json_equal(before, after)


def _shown(value: Any) -> str | None:
    if value is _NOTHING:
        return None
    text = value if isinstance(value, str) else canonical_json(value)
    return visible(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")
