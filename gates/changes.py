"""What differs between two inputs of the same gate, path by path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from runs.kernel.jsonable import canonical_json, json_equal
from runs.plaintext import visible

MAX_CHANGES: Final = 200
_MAX_SHOWN: Final = 2_000


@dataclass(frozen=True, slots=True)
class Change:
    """One place that differs; None stands for a side that has nothing there."""

    path: str
    before: str | None
    after: str | None


def changes_between(before: Any, after: Any) -> list[Change]:
    """The differing places, deepest first found, at most MAX_CHANGES of them."""
    found: list[Change] = []
    for change in _differing(before, after, ""):
        if len(found) == MAX_CHANGES:
            found.append(Change("…", None, None))
            break
        found.append(change)
    return found


def _differing(before: Any, after: Any, path: str) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            inner = f"{path}/{key}"
            if key not in after:
                yield Change(inner, _shown(before[key]), None)
            elif key not in before:
                yield Change(inner, None, _shown(after[key]))
            else:
                yield from _differing(before[key], after[key], inner)
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            inner = f"{path}/{index}"
            if index >= len(after):
                yield Change(inner, _shown(before[index]), None)
            elif index >= len(before):
                yield Change(inner, None, _shown(after[index]))
            else:
                yield from _differing(before[index], after[index], inner)
    elif not json_equal(before, after):
        yield Change(path or "/", _shown(before), _shown(after))


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else canonical_json(value)
    return visible(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")
