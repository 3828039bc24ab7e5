"""A proposed change as pages show it: its files, their lines, and what was said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from gates.models import Request
from runs.kernel import diffs
from runs.kernel.annotations import NAME, takes_annotations
from runs.kernel.diffs import Chunk, Diff, FileDiff
from runs.kernel.jsonable import canonical_json, parse_json
from runs.kernel.lines import Line
from runs.plaintext import visible

View = Literal["unified", "split"]
# What is in the page when it opens; the rest comes when it is scrolled to, or asked for.
FIRST_FILES: Final = 25
FIRST_LINES: Final = 2_500
# A file that is longer than this waits until somebody asks for it.
LONG_FILE: Final = 1_500
MAX_LINES: Final = 6_000
MAX_FOLDED: Final = 400
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


@dataclass(kw_only=True)
class FileView:
    """One file of the list, and its lines where they are shown."""

    index: int
    file: FileDiff
    shown: bool = False
    chunks: list[ChunkView] = field(default_factory=list)
    cut: int = 0
    said: int = 0
    typed: str = ""

    @property
    def path(self) -> str:
        return visible(self.file.path)

    @property
    def old_path(self) -> str:
        return visible(self.file.old_path)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def status(self) -> str:
        return self.file.status

    @property
    def is_long(self) -> bool:
        return _length(self.file) > LONG_FILE

    @property
    def lines(self) -> int:
        return _length(self.file)

    @property
    def takes_comments(self) -> bool:
        return bool(self.file.numbers)


@dataclass(kw_only=True)
class DiffPage:
    """The change of a question for its page."""

    pk: Any
    diff: Diff
    view: View
    files: list[FileView]
    commented: bool
    comments_name: str = ""
    comments_text: str = ""
    first: int = 0

    @property
    def count(self) -> int:
        return len(self.files) + self.diff.omitted

    @property
    def window(self) -> list[FileView]:
        """The files of the page from the first that was asked for."""
        return self.files[self.first :]


def diff_in(row: Request, shown: Any) -> Diff | None:
    """The change that the question's input holds, as this reader may see it."""
    hints = row.presentation
    pointer = hints.get(diffs.HINT) if isinstance(hints, Mapping) else None
    value = diffs.at(shown, pointer)
    if value is None:
        return None
    return _read(canonical_json(value))


@lru_cache(maxsize=8)
def _read(text: str) -> Diff | None:
    """Read once, for the page and for every file that is fetched after it."""
    return diffs.diff_of(parse_json(text))


def page_of(
    row: Request, shown: Any, look: Mapping[str, str], form: Any, response: Any
) -> DiffPage | None:
    """The change of a question as its page shows it; None where the question holds none."""
    diff = diff_in(row, shown)
    if diff is None:
        return None
    page = diff_page(
        row,
        diff,
        view=look.get("view", ""),
        first=look.get("file"),
        response=response,
        typed=getattr(form, "typed_by_file", None),
    )
    page.comments_name = getattr(form, "comments_name", "") if page.commented else ""
    page.comments_text = getattr(form, "comments_text", "")
    return page


def diff_page(
    row: Request,
    diff: Diff,
    *,
    view: str = "",
    first: object = None,
    response: Any = None,
    typed: Mapping[int, str] | None = None,
) -> DiffPage:
    """The change from the file that was asked for, with what an answer said of its lines."""
    told = said_in(response)
    files = [
        FileView(
            index=index,
            file=file,
            said=len(told.get(file.path, {})),
            typed=(typed or {}).get(index, ""),
        )
        for index, file in enumerate(diff.files)
    ]
    begin = _index(first, len(files))
    page = DiffPage(
        pk=row.pk,
        diff=diff,
        view="split" if view == "split" else "unified",
        files=files,
        commented=takes_annotations(row.response_schema),
        first=begin,
    )
    left = FIRST_LINES
    for one in files[begin : begin + FIRST_FILES]:
        asked = one.index == begin and first is not None
        if left <= 0 and not asked:
            break
        if not one.is_long or asked:
            show(one, page.view, told)
            left -= one.lines
    return page


def one_file(row: Request, diff: Diff, index: int, *, view: str, response: Any) -> FileView | None:
    """A single file with its lines, fetched by itself; None when there is no such file."""
    if not 0 <= index < len(diff.files):
        return None
    found = FileView(index=index, file=diff.files[index])
    told = said_in(response)
    found.said = len(told.get(found.file.path, {}))
    show(found, "split" if view == "split" else "unified", told)
    return found


Said = dict[str, dict[tuple[str, int], list[Comment]]]


def said_in(response: Any) -> Said:
    """The annotations of an answer by file, side and line."""
    feedback = response.get("feedback") if isinstance(response, Mapping) else None
    listed = feedback.get(NAME) if isinstance(feedback, Mapping) else None
    told: Said = {}
    for one in listed if isinstance(listed, list | tuple) else ():
        anchor = one.get("anchor") if isinstance(one, Mapping) else None
        if not isinstance(anchor, Mapping):
            continue
        target, side, position = anchor.get("target"), anchor.get("side"), anchor.get("position")
        if isinstance(target, str) and isinstance(side, str) and isinstance(position, int):
            author = one.get("author")
            comment = Comment(
                body=visible(str(one.get("body", ""))),
                author=visible(str(author.get("id", ""))) if isinstance(author, Mapping) else "",
                at=visible(str(one.get("createdAt", "")))[:40],
            )
            told.setdefault(target, {}).setdefault((side, position), []).append(comment)
    return told


def show(one: FileView, view: View, told: Said) -> None:
    """Fill in the lines of a file, as many as a page can carry."""
    said = told.get(one.file.path, {})
    left = MAX_LINES
    for chunk in one.file.chunks:
        if left <= 0:
            one.cut += len(chunk.lines)
            continue
        lines = chunk.lines[:left]
        one.cut += len(chunk.lines) - len(lines)
        has_said = any((side, n) in said for line in lines for side, n in _places(line))
        if chunk.folded and len(lines) > MAX_FOLDED and not has_said:
            one.chunks.append(ChunkView(rows=[], folded=True, hidden=len(lines)))
            continue
        left -= len(lines)
        make = _split_rows if view == "split" else _unified_rows
        rows = list(make(lines, said))
        one.chunks.append(
            ChunkView(
                rows=rows,
                folded=chunk.folded and not has_said,
                hidden=chunk.hidden,
                heading=visible(chunk.heading),
            )
        )
    one.shown = True


def _unified_rows(lines: Sequence[Line], said: Mapping[Any, list[Comment]]) -> Iterator[Row]:
    before = "same"
    marks = _marks(lines)
    for line in lines:
        begins = line.kind != "same" and before == "same"
        side = "old" if line.kind == "old" else "new"
        cell = _cell(line, side, marks.get(id(line)), said)
        yield Row(cell=cell, old=line.old, begins=begins)
        before = line.kind


def _split_rows(lines: Sequence[Line], said: Mapping[Any, list[Comment]]) -> Iterator[Row]:
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
            for place in ([(side, number)] if line.kind != "same" else _places(line))
            for comment in said.get(place, ())
        ],
    )


def _places(line: Line) -> list[tuple[str, int]]:
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


def _length(file: FileDiff) -> int:
    return sum(len(chunk.lines) for chunk in file.chunks if not _is_folded_away(chunk))


def _is_folded_away(chunk: Chunk) -> bool:
    return chunk.folded and len(chunk.lines) > MAX_FOLDED


def _index(given: object, count: int) -> int:
    text = str(given)
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        return 0
    return min(int(text), max(0, count - 1))
