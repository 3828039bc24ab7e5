"""The rows of a change: one line below the other, or both sides beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from runs.kernel.lines import Line
from runs.plaintext import visible

View = Literal["unified", "split"]
MAX_WIDTH: Final = 2_000
_SIGNS: Final = {"same": " ", "old": "-", "new": "+"}


@dataclass(frozen=True, kw_only=True)
class Comment:
    """What somebody said of a line."""

    body: str
    author: str
    at: str


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One side of a row: a line with its number, in parts of which the marked ones changed."""

    kind: str = "none"
    number: int | None = None
    parts: list[tuple[bool, str]] = field(default_factory=list)
    ends: bool = True
    side: str = ""
    comments: list[Comment] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: in a unified view one line with both numbers, in a split view both sides."""

    cell: Cell
    old: int | None = None
    right: Cell | None = None
    # The first row of a change: where the keys go to.
    begins: bool = False

    @property
    def sign(self) -> str:
        return _SIGNS.get(self.cell.kind, " ")

    @property
    def comments(self) -> list[Comment]:
        return [*self.cell.comments, *(self.right.comments if self.right else ())]


@dataclass(frozen=True, kw_only=True)
class ChunkView:
    """Rows that stand together; `hidden` lines between them are not in the change."""

    rows: list[Row]
    folded: bool = False
    hidden: int = 0
    heading: str = ""

    @property
    def count(self) -> int:
        return len(self.rows)


def unified_rows(lines: Sequence[Line], said: Mapping[Any, list[Comment]]) -> Iterator[Row]:
    """One line below the other, with both numbers."""
    before = "same"
    marks = _marks(lines)
    for line in lines:
        begins = line.kind != "same" and before == "same"
        side = "old" if line.kind == "old" else "new"
        cell = _cell(line, side, marks.get(id(line)), said)
        yield Row(cell=cell, old=line.old, begins=begins)
        before = line.kind


def split_rows(lines: Sequence[Line], said: Mapping[Any, list[Comment]]) -> Iterator[Row]:
    """What was at the left, what is at the right."""
    marks = _marks(lines)
    for block in _blocks(lines):
        if block[0].kind == "same":
            for line in block:
                left = _cell(line, "old", None, {}) if line.old is not None else Cell()
                yield Row(cell=left, right=_cell(line, "new", None, said))
            continue
        olds = [line for line in block if line.kind == "old"]
        news = [line for line in block if line.kind == "new"]
        for at in range(max(len(olds), len(news))):
            left, right = Cell(), Cell()
            if at < len(olds):
                left = _cell(olds[at], "old", marks.get(id(olds[at])), said)
            if at < len(news):
                right = _cell(news[at], "new", marks.get(id(news[at])), said)
            yield Row(cell=left, right=right, begins=at == 0)


def _blocks(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Runs of lines that stayed and of lines that changed."""
    block: list[Line] = []
    for line in lines:
        if block and (block[0].kind == "same") != (line.kind == "same"):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _marks(lines: Sequence[Line]) -> dict[int, tuple[int, int]]:
    """Where a line differs from the one it replaced, when as many came as went."""
    found: dict[int, tuple[int, int]] = {}
    for block in _blocks(lines):
        olds = [line for line in block if line.kind == "old"]
        news = [line for line in block if line.kind == "new"]
        if len(olds) != len(news):
            continue
        for old, new in zip(olds, news, strict=True):
            a, b = old.text[:MAX_WIDTH], new.text[:MAX_WIDTH]
            top = _common(a, b)
            low = _common(a[top:][::-1], b[top:][::-1])
            # Two lines with little in common are two lines.
            if 2 * (top + low) >= max(len(a), len(b)):
                found[id(old)] = (top, len(a) - low)
                found[id(new)] = (top, len(b) - low)
    return found


def _common(a: str, b: str) -> int:
    return next(
        (at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


def _cell(
    line: Line, side: str, mark: tuple[int, int] | None, said: Mapping[Any, list[Comment]]
) -> Cell:
    number = line.old if side == "old" else line.new
    return Cell(
        kind=line.kind,
        number=number,
        parts=_parts(line.text, mark),
        ends=line.ends,
        side=side,
        comments=[
            comment
            for place in ([(side, number)] if line.kind != "same" else places_of(line))
            for comment in said.get(place, ())
        ],
    )


def places_of(line: Line) -> list[tuple[str, int]]:
    """Each side that has the line, with its number there."""
    sides = (("old", line.old), ("new", line.new))
    return [(side, number) for side, number in sides if number is not None]


def _parts(text: str, mark: tuple[int, int] | None) -> list[tuple[bool, str]]:
    cut = text[:MAX_WIDTH]
    more = [(False, "\u2026")] if len(text) > MAX_WIDTH else []
    if mark is None:
        return [(False, visible(cut)), *more]
    begin, end = mark
    parts = [(False, cut[:begin]), (True, cut[begin:end]), (False, cut[end:])]
    return [(marked, visible(part)) for marked, part in parts if part] + more
