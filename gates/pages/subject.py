"""What a question is about, as facts that a person reads at a glance."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.urls import reverse

from gates.actions import typed_questions
from gates.models import Request
from gates.reviews import rich
from runs.kernel.jsonable import canonical_json
from runs.models import Artifact
from runs.pages import words
from runs.plaintext import visible

LONG: Final = 160
MAX_FACTS: Final = 60
MAX_ROWS: Final = 200
MAX_COLUMNS: Final = 6
FIRST_ROWS: Final = 12
_CELL: Final = 300
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_HASH: Final = re.compile(r"(?=.*\d)[0-9a-f]{7,64}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)")
# Columns that say themselves what they are need no heading above them.
_ORDER: Final = {"short": 0, "id": 0, "subject": 1, "title": 1, "at": 3, "date": 3}
_PLAIN: Final = frozenset({"id", "short", "at", "author", "subject", "name", "title"})


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One value: text, code, number, a day ("time") or a day with its hour ("moment")."""

    kind: str
    text: str
    at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class FileFact:
    """A file of the run that the subject names."""

    name: str
    digest: str
    short: str
    size: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One label with its value; `kind` says how it is drawn."""

    label: str
    kind: str
    cell: Cell | None = None
    value: Any = None
    file: FileFact | None = None
    columns: list[str] = field(default_factory=list)
    headed: bool = False
    rows: list[list[Cell]] = field(default_factory=list)
    more: list[list[Cell]] = field(default_factory=list)
    count: int = 0

    @property
    def wide(self) -> bool:
        return self.kind in ("list", "output", "tree", "long")

    @property
    def omitted(self) -> int:
        return self.count - len(self.rows) - len(self.more)


@dataclass(frozen=True, slots=True)
class _Look:
    """How the author wants a value shown: as output, and how many items there are in truth."""

    way: str = ""
    count: int = 0

    @classmethod
    def of(cls, item: Mapping[str, Any], about: Any) -> _Look:
        pointer = item.get("count")
        count = _at(about, pointer) if isinstance(pointer, str) else 0
        is_count = isinstance(count, int) and not isinstance(count, bool)
        return cls(str(item.get("as", "")), count if is_count else 0)


def files_of(row: Request) -> dict[str, FileFact]:
    """The run's files that the question's input names by their digest."""
    named = set(digests_in(row.input))
    if not named:
        return {}
    found = Artifact.objects.filter(run=row.run_id, digest__in=named).order_by("seq")
    return {
        artifact.digest: FileFact(
            name=visible(artifact.name),
            digest=artifact.digest,
            short=artifact.digest[7:15],
            size=words.size(artifact.size),
            url=reverse("runs:artifact", args=[row.run_id, artifact.digest]),
        )
        for artifact in found
    }


def summary_of(row: Request, files: Mapping[str, FileFact]) -> list[Fact]:
    """What the decision covers: the author's choice, else the members of the input."""
    about = typed_questions.subject_of(row)
    wanted = row.presentation.get("summary") if isinstance(row.presentation, Mapping) else None
    chosen = [
        (str(item["label"]), _at(about, item["pointer"]), _Look.of(item, about))
        for item in (wanted if isinstance(wanted, list) else ())
        if isinstance(item, Mapping) and isinstance(item.get("pointer"), str) and "label" in item
    ]
    if not chosen:
        about = rich.subject_of(about, row)
    if not chosen and isinstance(about, Mapping):
        chosen = [(name, value, _Look()) for name, value in about.items()]
    elif not chosen and about is not None:
        chosen = [("about", about, _Look())]
    shown = [item for item in chosen[:MAX_FACTS] if item[1] is not None]
    return [_fact(visible(label), value, look, files) for label, value, look in shown]


def _at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and len(key) < 9 and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _fact(label: str, value: Any, look: _Look, files: Mapping[str, FileFact]) -> Fact:
    digest = value.get("digest") if isinstance(value, Mapping) else value
    if isinstance(digest, str) and digest in files:
        return Fact(label=label, kind="file", file=files[digest])
    if isinstance(value, list):
        return _list(label, value, look)
    if isinstance(value, Mapping):
        if _is_flat(value):
            return _table(label, [value], _Look())
        return Fact(label=label, kind="tree", value=value)
    cell = _cell(value)
    is_long = cell.kind == "text" and (len(cell.text) > LONG or "\n" in cell.text)
    return Fact(label=label, kind="long" if is_long else "cell", cell=cell)


def _list(label: str, items: list[Any], look: _Look) -> Fact:
    if not items:
        return Fact(label=label, kind="cell", cell=Cell(kind="none", text="none"))
    if all(isinstance(item, Mapping) and _is_flat(item) for item in items):
        return _table(label, items, look)
    if any(isinstance(item, Mapping | list) for item in items):
        return Fact(label=label, kind="tree", value=items)
    if look.way == "output":
        lines = "\n".join(visible(str(item)) for item in items[-MAX_ROWS:])
        return Fact(label=label, kind="output", value=lines)
    rows = [[_cell(item, _CELL)] for item in items[:MAX_ROWS]]
    return Fact(
        label=label,
        kind="list",
        rows=rows[:FIRST_ROWS],
        more=rows[FIRST_ROWS:],
        count=look.count or len(items),
    )


def _table(label: str, items: list[Any], look: _Look) -> Fact:
    columns = list(dict.fromkeys(name for item in items[:MAX_ROWS] for name in item))
    if "short" in columns and "id" in columns:
        columns.remove("id")
    if len(columns) > MAX_COLUMNS:
        return Fact(label=label, kind="tree", value=items if len(items) > 1 else items[0])
    # What it is comes before who, and when comes last.
    columns.sort(key=lambda name: _ORDER.get(name, 2))
    # Of a commit the day is enough; of anything else the hour may be what is asked about.
    is_plain = _PLAIN.issuperset(columns)
    whole = "time" if is_plain else "moment"
    rows = [[_cell(item.get(name), _CELL, whole) for name in columns] for item in items[:MAX_ROWS]]
    return Fact(
        label=label,
        kind="list",
        columns=[visible(name) for name in columns],
        headed=not is_plain,
        rows=rows[:FIRST_ROWS],
        more=rows[FIRST_ROWS:],
        count=look.count or len(items),
    )


def _is_flat(value: Mapping[str, Any]) -> bool:
    """Whether an object fits into one line of a list."""
    return 0 < len(value) <= MAX_COLUMNS + 1 and not any(
        isinstance(item, Mapping | list) or (isinstance(item, str) and len(item) > _CELL)
        for item in value.values()
    )


def _cell(value: Any, limit: int | None = None, moment: str = "moment") -> Cell:
    if value is None:
        return Cell(kind="none", text="none")
    if isinstance(value, bool):
        return Cell(kind="text", text="yes" if value else "no")
    if not isinstance(value, str):
        return Cell(kind="number", text=canonical_json(value))
    if _DIGEST.fullmatch(value):
        return Cell(kind="digest", text=value)
    if _HASH.fullmatch(value):
        return Cell(kind="digest" if len(value) > 12 else "code", text=value)
    if _TIME.fullmatch(value):
        return _moment(value, moment)
    text = visible(value)
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "\u2026"
    return Cell(kind="text", text=text or "empty text")


def _moment(value: str, kind: str) -> Cell:
    try:
        return Cell(kind=kind, text=value, at=datetime.fromisoformat(value))
    except ValueError:
        return Cell(kind="text", text=value)


def digests_in(value: Any) -> Iterable[str]:
    """Every digest of a file that a value holds."""
    if isinstance(value, str):
        if _DIGEST.fullmatch(value):
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from digests_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from digests_in(item)
