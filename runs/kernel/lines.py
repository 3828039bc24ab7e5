"""Which lines of a text were taken out and which put in, found in bounded time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

# All texts of a change together cost at most so many steps; what costs more is replaced whole.
MAX_STEPS: Final = 1_500_000
MAX_EDITS: Final = 600

Kind = Literal["same", "old", "new"]
Place = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number before, its number after, and what it says."""

    kind: Kind
    old: int | None
    new: int | None
    text: str
    ends: bool = True
    """False for a last line that no line break ends."""


class Steps:
    """What may still be spent on comparing; shared by all files of one change."""

    def __init__(self, left: int = MAX_STEPS) -> None:
        self.left = left


def split(text: str) -> list[Place]:
    """The lines of a text, each with whether a line break ends it."""
    parts = text.split("\n")
    last = parts.pop()
    return [(part, True) for part in parts] + ([(last, False)] if last else [])


def compare(old: str, new: str, steps: Steps) -> list[Line]:
    """Every line of both texts in reading order: what was taken out stands before what came in."""
    before, after = split(old), split(new)
    top = 0
    while top < min(len(before), len(after)) and before[top] == after[top]:
        top += 1
    low = 0
    while low < min(len(before), len(after)) - top and before[-1 - low] == after[-1 - low]:
        low += 1
    gone, came = before[top : len(before) - low], after[top : len(after) - low]
    pairs = [
        *((at, at) for at in range(top)),
        *((top + i, top + j) for i, j in _kept(gone, came, steps)),
        *((len(before) - low + at, len(after) - low + at) for at in range(low)),
    ]
    return list(_lines(before, after, pairs))


def _lines(
    before: Sequence[Place], after: Sequence[Place], kept: Sequence[tuple[int, int]]
) -> Iterator[Line]:
    i = j = 0
    for at, to in [*kept, (len(before), len(after))]:
        for number in range(i, at):
            yield Line("old", number + 1, None, *before[number])
        for number in range(j, to):
            yield Line("new", None, number + 1, *after[number])
        if at < len(before):
            yield Line("same", at + 1, to + 1, *after[to])
        i, j = at + 1, to + 1


def _kept(a: Sequence[Place], b: Sequence[Place], steps: Steps) -> list[tuple[int, int]]:
    """The pairs of lines that stay; a line that the other side does not have cannot be in one."""
    in_a, in_b = set(a), set(b)
    at = [i for i, line in enumerate(a) if line in in_b]
    to = [j for j, line in enumerate(b) if line in in_a]
    pairs = _shortest([a[i] for i in at], [b[j] for j in to], steps)
    return [(at[i], to[j]) for i, j in pairs]


def _shortest(a: Sequence[Place], b: Sequence[Place], steps: Steps) -> list[tuple[int, int]]:
    """The pairs along the shortest way from one to the other (Myers 1986)."""
    if not a or not b:
        return []
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(MAX_EDITS, len(a) + len(b)) + 1):
        trail.append(dict(furthest))
        steps.left -= 2 * edits + 1
        for k in range(-edits, edits + 1, 2):
            x = _start(furthest, k, edits)
            y, began = x - k, x
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            steps.left -= x - began
            furthest[k] = x
            if x >= len(a) and y >= len(b):
                return _walked(trail, len(a), len(b))
        if steps.left < 0:
            break
    return []


def _start(furthest: dict[int, int], k: int, edits: int) -> int:
    return furthest[k + 1] if _goes_down(furthest, k, edits) else furthest[k - 1] + 1


def _walked(trail: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """The way back from the end, as the pairs that it passes."""
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trail) - 1, -1, -1):
        furthest, k = trail[edits], x - y
        begin = _start(furthest, k, edits) if edits else 0
        while x > begin:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        if edits:
            x, y = (x, y - 1) if _goes_down(furthest, k, edits) else (x - 1, y)
    return pairs[::-1]


def _goes_down(furthest: dict[int, int], k: int, edits: int) -> bool:
    return k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
