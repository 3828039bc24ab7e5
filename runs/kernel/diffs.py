"""A proposed change, as a question holds it, file by file and line by line.

Three shapes, told apart by what they are:

- `{"src/a.py": {"old": text or null, "new": text or null}}`, null where there is no such file;
- `{"notes.md": text}`, files as they are now;
- a unified diff, as git writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from runs.kernel.lines import Line, Steps, compare, split

MAX_FILES: Final = 500
MAX_TEXT: Final = 8 * 1024 * 1024
CONTEXT: Final = 3
# Where a question's presentation says that its input holds a change: a JSON pointer.
HINT: Final = "diff"
# Members of a material that hold a change without its author saying so.
MEMBERS: Final = ("diff", "changes", "files")

Side = Literal["old", "new"]
Status = Literal["added", "removed", "changed", "renamed", "same", "binary", "file"]
_HUNK: Final = re.compile(
    r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)", re.ASCII | re.DOTALL
)
_ESCAPED: Final = re.compile(r'\\([0-7]{3}|["\\abfnrtv])')
_ESCAPES: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, '"': 34, "\\": 92}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Lines that are shown together; folded ones stay the same around a change.

    `hidden` counts lines between two hunks that a unified diff does not hold.
    """

    lines: tuple[Line, ...] = ()
    folded: bool = False
    hidden: int = 0
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """One file of a change. `path` is what an annotation's anchor names as its target."""

    path: str
    status: Status
    old_path: str = ""
    chunks: tuple[Chunk, ...] = ()
    added: int = 0
    removed: int = 0
    numbers: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def has_line(self, side: str, position: int) -> bool:
        """Whether the diff holds this line, so that somebody can say something about it."""
        return position in self.numbers.get(side, ())

    @property
    def first_line(self) -> tuple[Side, int] | None:
        """The first line that changed, else the first there is."""
        lines = [line for chunk in self.chunks for line in chunk.lines]
        line = next((one for one in lines if one.kind != "same"), lines[0] if lines else None)
        if line is None:
            return None
        return ("new", line.new) if line.new is not None else ("old", line.old or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """A change: its files in order, and how many there are beyond those that are shown."""

    files: tuple[FileDiff, ...] = ()
    omitted: int = 0

    def file(self, path: object) -> FileDiff | None:
        return next((one for one in self.files if one.path == path), None)

    @property
    def added(self) -> int:
        return sum(one.added for one in self.files)

    @property
    def removed(self) -> int:
        return sum(one.removed for one in self.files)

    @property
    def takes_comments(self) -> bool:
        """Whether there is any line to say something about."""
        return any(one.numbers for one in self.files)


def pointer_of(material: Any) -> str:
    """Where the material holds a change, as a JSON pointer into it; empty when it holds none."""
    if isinstance(material, Mapping):
        for name in MEMBERS:
            if _is_change(material.get(name)):
                return f"/{name}"
    return ""


def at(value: Any, pointer: object) -> Any:
    """What stands at a JSON pointer, None where nothing does."""
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        return None
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def diff_of(value: Any) -> Diff | None:
    """The change in one of the three shapes; None for anything else, and for none at all."""
    if not _is_change(value):
        return None
    if isinstance(value, str):
        found = list(_unified(value))
    else:
        steps = Steps()
        # In the order of their names, for JSON has none: a file keeps its place everywhere.
        items = sorted(value.items())
        files = [_of_texts(path, given, steps) for path, given in items[:MAX_FILES]]
        return Diff(files=tuple(files), omitted=max(0, len(items) - MAX_FILES))
    if not found:
        return None
    return Diff(files=tuple(found[:MAX_FILES]), omitted=max(0, len(found) - MAX_FILES))


def _is_change(value: Any) -> bool:
    if isinstance(value, str):
        begins = value.startswith(("diff --git ", "--- ")) or "\n--- " in value
        return begins and len(value) <= MAX_TEXT and ("@@ -" in value or value.startswith("diff"))
    if not isinstance(value, Mapping) or not value:
        return False
    texts = [text for given in value.values() for text in _texts(given)]
    return None not in texts and sum(map(len, filter(None, texts))) <= MAX_TEXT


def _texts(given: Any) -> list[str | None]:
    """The texts of one file; a None among them says that it is no file."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Mapping) or not {"old", "new"} >= set(given) or not given:
        return [None]
    sides = [given.get("old"), given.get("new")]
    return [side if isinstance(side, str) else "" if side is None else None for side in sides]


def _of_texts(path: str, given: Any, steps: Steps) -> FileDiff:
    if isinstance(given, str):
        lines = [
            Line("same", None, number, text, ends)
            for number, (text, ends) in enumerate(split(given), start=1)
        ]
        return _file(path, "file", (Chunk(lines=tuple(lines)),) if lines else ())
    old, new = given.get("old"), given.get("new")
    compared = compare(old or "", new or "", steps)
    status: Status = "same" if old == new else "changed"
    if old is None or new is None:
        status = "removed" if new is None else "added"
    return _file(path, status, tuple(_folded(compared)))


def _folded(lines: Sequence[Line]) -> Iterator[Chunk]:
    """The lines in chunks: what changed with some lines around it, and what stays folded away."""
    shown = [False] * len(lines)
    for index, line in enumerate(lines):
        if line.kind != "same":
            low, high = max(0, index - CONTEXT), min(len(lines), index + CONTEXT + 1)
            shown[low:high] = [True] * (high - low)
    for index in range(len(lines)):
        # A single line takes no more room than the word that it is folded away.
        alone = all(shown[index - 1 : index] + shown[index + 1 : index + 2])
        shown[index] = shown[index] or (alone and len(lines) > 1)
    begin = 0
    for index in range(1, len(lines) + 1):
        if index == len(lines) or shown[index] != shown[begin]:
            yield Chunk(lines=tuple(lines[begin:index]), folded=not shown[begin])
            begin = index


def _file(path: str, status: Status, chunks: tuple[Chunk, ...], *, old_path: str = "") -> FileDiff:
    lines = [line for chunk in chunks for line in chunk.lines]
    numbers = {
        "old": frozenset(line.old for line in lines if line.old is not None),
        "new": frozenset(line.new for line in lines if line.new is not None),
    }
    return FileDiff(
        path=path,
        status=status,
        old_path=old_path if old_path != path else "",
        chunks=chunks,
        added=sum(line.kind == "new" for line in lines),
        removed=sum(line.kind == "old" for line in lines),
        numbers={side: found for side, found in numbers.items() if found},
    )


# --- unified diffs --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Head:
    """What a unified diff says of a file before its first hunk."""

    old: str = ""
    new: str = ""
    is_git: bool = False
    binary: bool = False
    added: bool = False
    removed: bool = False
    chunks: list[Chunk] = field(default_factory=list)
    seen_old: int = 0

    def file(self) -> FileDiff:
        path = self.new or self.old
        if self.removed or self.new == "/dev/null":
            path, status = self.old, "removed"
        elif self.added or self.old == "/dev/null":
            status = "added"
        elif self.old and self.old != self.new:
            status = "renamed"
        else:
            status = "changed" if self.chunks else "same"
        if self.binary:
            status = "binary"
        old_path = self.old if status == "renamed" else ""
        return _file(path, status, tuple(self.chunks), old_path=old_path)  # type: ignore[arg-type]  # one of the words above


def _unified(text: str) -> Iterator[FileDiff]:
    lines = text.split("\n")
    head: _Head | None = None
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if line.startswith("diff --git "):
            if head is not None:
                yield head.file()
            head = _Head(is_git=True)
            head.old, head.new = _git_names(line.removeprefix("diff --git ").rstrip("\r"))
        elif line.startswith("--- ") and index < len(lines) and lines[index].startswith("+++ "):
            if head is not None and (not head.is_git or head.chunks):
                yield head.file()
                head = None
            head = head or _Head()
            head.old = _name(line[4:], "a/")
            head.new = _name(lines[index][4:], "b/")
            index += 1
        elif head is not None and (match := _HUNK.fullmatch(line.rstrip("\r"))):
            index = _hunk(head, match, lines, index)
        elif head is not None:
            _header(head, line.rstrip("\r"))
    if head is not None:
        yield head.file()


def _header(head: _Head, line: str) -> None:
    if line.startswith("new file mode"):
        head.added = True
    elif line.startswith("deleted file mode"):
        head.removed = True
    elif line.startswith(("rename from ", "copy from ")):
        head.old = _unquoted(line.split(" from ", 1)[1])
    elif line.startswith(("rename to ", "copy to ")):
        head.new = _unquoted(line.split(" to ", 1)[1])
    elif line.startswith(("Binary files ", "GIT binary patch")):
        head.binary = True


def _hunk(head: _Head, match: re.Match[str], lines: Sequence[str], index: int) -> int:
    old, new = int(match[1]), int(match[3])
    left = [int(match[2] or 1), int(match[4] or 1)]
    # A side without a line is named by the line before it.
    old, new = old + (left[0] == 0), new + (left[1] == 0)
    if hidden := old - head.seen_old - 1:
        head.chunks.append(Chunk(folded=True, hidden=max(0, hidden), heading=match[5][:200]))
    found: list[Line] = []
    while index < len(lines) and (left[0] > 0 or left[1] > 0):
        line = lines[index]
        sign, text = line[:1], line[1:]
        if sign == "-" and left[0]:
            found.append(Line("old", old, None, text))
        elif sign == "+" and left[1]:
            found.append(Line("new", None, new, text))
        elif sign in (" ", "") and left[0] and left[1]:
            found.append(Line("same", old, new, text))
        elif sign == "\\" and found:
            found[-1] = _unended(found[-1])
        else:
            break
        index += 1
        if sign != "\\":
            old, new = old + (sign != "+"), new + (sign != "-")
            left = [left[0] - (sign != "+"), left[1] - (sign != "-")]
    if index < len(lines) and lines[index].startswith("\\") and found:
        found[-1] = _unended(found[-1])
        index += 1
    head.seen_old = old - 1
    if found:
        head.chunks.append(Chunk(lines=tuple(found)))
    return index


def _unended(line: Line) -> Line:
    return Line(line.kind, line.old, line.new, line.text, ends=False)


def _git_names(text: str) -> tuple[str, str]:
    """The two names of `diff --git a/x b/x`; they are the same but for a rename."""
    if text.startswith('"'):
        match = re.match(r'"((?:[^"\\]|\\.)*)" (.*)', text)
        if match:
            return _name(f'"{match[1]}"', "a/"), _name(match[2], "b/")
    middle = len(text) // 2
    if text[middle : middle + 1] == " ":
        return _name(text[:middle], "a/"), _name(text[middle + 1 :], "b/")
    before, _, after = text.partition(" b/")
    return _name(before, "a/"), after


def _name(text: str, prefix: str) -> str:
    # A tab ends the name; a time may follow it.
    name = _unquoted(text.split("\t", 1)[0].rstrip("\r"))
    return name.removeprefix(prefix)


def _unquoted(text: str) -> str:
    """A name that git has quoted: its bytes are escaped."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text

    def byte(match: re.Match[str]) -> str:
        given = match[1]
        return chr(int(given, 8) & 0xFF if given[0].isdigit() else _ESCAPES[given])

    found = _ESCAPED.sub(byte, text[1:-1])
    try:
        return found.encode("latin-1").decode()
    except (UnicodeEncodeError, UnicodeDecodeError):
        return found
