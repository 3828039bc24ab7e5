"""A proposed change as pages show it: its files, their lines, and what was said of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gates.models import Request
from gates.reviews.diff_rows import ChunkView, Comment, View, places_of, split_rows, unified_rows
from runs.kernel import diffs
from runs.kernel.annotations import NAME, takes_annotations
from runs.kernel.diffs import Chunk, Diff, FileDiff
from runs.plaintext import visible

# What is in the page when it opens; the rest comes when it is scrolled to, or asked for.
FIRST_FILES: Final = 25
FIRST_LINES: Final = 2_500
# A file that is longer than this waits until somebody asks for it.
LONG_FILE: Final = 1_500
MAX_LINES: Final = 6_000
MAX_FOLDED: Final = 400
# Changes that this process keeps read.
MAX_KEPT: Final = 8
_read: OrderedDict[tuple[str, str], Diff | None] = OrderedDict()
_lock: Final = threading.Lock()


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
        return visible(self.file.path) or "a file without a name"

    @property
    def old_path(self) -> str:
        return visible(self.file.old_path)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2] or self.path

    @property
    def folder(self) -> str:
        folder, _, name = self.path.rpartition("/")
        return folder if name else ""

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
    if not isinstance(pointer, str):
        return None
    if shown is not row.input:
        return diffs.diff_of(diffs.at(shown, pointer))
    if (kept := kept_of(row)) is not None:
        return kept
    key = (row.digest, pointer)
    found = diffs.diff_of(diffs.at(shown, pointer))
    with _lock:
        _read[key] = found
        while len(_read) > MAX_KEPT:
            _read.popitem(last=False)
    return found


def kept_of(row: Request) -> Diff | None:
    """The change as it was read for the page; every file that is fetched after it comes from it.

    A digest has one input, so this is the change that was asked about, whatever became of the row.
    """
    hints = row.presentation
    key = (row.digest, str(hints.get(diffs.HINT) if isinstance(hints, Mapping) else ""))
    with _lock:
        if key not in _read:
            return None
        _read.move_to_end(key)
        return _read[key]


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
        commented=response is None and takes_annotations(row.response_schema),
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


def one_file(diff: Diff, index: int, *, view: View, response: Any) -> FileView | None:
    """A single file with its lines, fetched by itself; None when there is no such file."""
    if not 0 <= index < len(diff.files):
        return None
    found = FileView(index=index, file=diff.files[index])
    told = said_in(response)
    found.said = len(told.get(found.file.path, {}))
    show(found, view, told)
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
        has_said = any((side, n) in said for line in lines for side, n in places_of(line))
        if chunk.folded and len(lines) > MAX_FOLDED and not has_said:
            one.chunks.append(ChunkView(rows=[], folded=True, hidden=len(lines)))
            continue
        left -= len(lines)
        make = split_rows if view == "split" else unified_rows
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


def _length(file: FileDiff) -> int:
    return sum(len(chunk.lines) for chunk in file.chunks if not _is_folded_away(chunk))


def _is_folded_away(chunk: Chunk) -> bool:
    return chunk.folded and len(chunk.lines) > MAX_FOLDED


def _index(given: object, count: int) -> int:
    text = str(given)
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        return 0
    return min(int(text), max(0, count - 1))
