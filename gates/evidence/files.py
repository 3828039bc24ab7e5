"""The files that a question rests on, and what of them can be looked at without loading them.

A file is a stranger's. Pictures come from the address of the file itself, tables, texts and JSON
are read here up to a bound and escaped, Markdown passes the one place that cleans it, and HTML is
shown in a frame that runs no script and loads nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.urls import reverse

from gates.models import Request
from gates.pages.subject import FileFact, digests_in
from gates.reviews.open_findings import steps_behind
from runs.artifacts import store
from runs.artifacts.store import ArtifactChanged, ArtifactMissing
from runs.kernel.jsonable import JsonValueError, parse_json
from runs.models import Artifact
from runs.pages import words
from runs.plaintext import visible

MAX_FILES: Final = 40
MAX_PREVIEWS: Final = 12
TEXT_BYTES: Final = 256 * 1024
# What is looked at is read whole up to here, to compare it with its digest.
CHECKED_BYTES: Final = 8 * 1024 * 1024
TABLE_ROWS: Final = 30
TABLE_COLUMNS: Final = 12
TEXT_LINES: Final = 200
IMAGE_BYTES: Final = 8 * 1024 * 1024
HTML_BYTES: Final = 2 * 1024 * 1024
_CELL: Final = 200
_LOOKED_AT: Final = 500
_IMAGES: Final = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_KINDS: Final = {
    "text/csv": "table",
    "text/tab-separated-values": "table",
    "text/markdown": "markdown",
    "text/html": "html",
    "application/json": "json",
    "text/plain": "text",
}
_ENDINGS: Final = {
    ".csv": "table",
    ".tsv": "table",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".json": "json",
    ".txt": "text",
    ".log": "text",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One file; `kind` says how it is shown: image, table, markdown, html, json, text or none."""

    file: FileFact
    step: str
    kind: str = "none"
    src: str = ""
    text: str = ""
    value: Any = None
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = field(default_factory=tuple)
    is_cut: bool = False
    note: str = ""


def _is_behind(path: Sequence[str], behind: set[tuple[str, ...]]) -> bool:
    """Whether the place is one of these, or inside of one."""
    return any(tuple(path[:deep]) in behind for deep in range(1, len(path) + 1))


def evidence_of(row: Request) -> list[Evidence]:
    """The files that the question names, then those of the steps before it."""
    named = set(digests_in(row.input))
    behind = steps_behind(row)
    found: dict[str, Artifact] = {}
    newest = Artifact.objects.filter(run=row.run_id).order_by("-seq")[:_LOOKED_AT]
    for artifact in newest:
        if artifact.digest in named or _is_behind(artifact.step_path, behind):
            found.setdefault(artifact.digest, artifact)
    ordered = sorted(found.values(), key=lambda one: (one.digest not in named, one.seq))
    return [
        _evidence(row, artifact, looked=at < MAX_PREVIEWS)
        for at, artifact in enumerate(ordered[:MAX_FILES])
    ]


def kind_of(artifact: Artifact) -> str:
    """How a file is shown: by its media type, else by the end of its name."""
    media = artifact.media_type.partition(";")[0].strip().lower()
    if media in _IMAGES:
        return "image"
    ending = f".{artifact.name.rpartition('.')[2].lower()}" if "." in artifact.name else ""
    if media in ("", "text/plain", "application/octet-stream"):
        return _ENDINGS.get(ending, _KINDS.get(media, "none"))
    return _KINDS.get(media, "none")


def _evidence(row: Request, artifact: Artifact, *, looked: bool) -> Evidence:
    file = FileFact(
        name=visible(artifact.name),
        digest=artifact.digest,
        short=artifact.digest[7:15],
        size=words.size(artifact.size),
        url=reverse("runs:artifact", args=[artifact.run_id, artifact.digest]),
    )
    step = visible(artifact.step_path[-1]) if artifact.step_path else ""
    if not looked:
        return Evidence(file=file, step=step)
    try:
        shown = _SHOWN.get(kind_of(artifact), _nothing)(row, artifact, file)
    except ArtifactMissing:
        return Evidence(file=file, step=step, note="Its bytes are not in the store any more.")
    except ArtifactChanged:
        note = "Its bytes were changed after they were kept, so nothing of it is shown."
        return Evidence(file=file, step=step, note=note)
    return Evidence(file=file, step=step, **shown)


def head_of(artifact: Artifact, limit: int) -> bytes:
    """The first bytes of the file; raises ArtifactMissing, and ArtifactChanged for other bytes.

    Of a file over CHECKED_BYTES only the length is compared: its download checks the rest.
    """
    if artifact.size <= CHECKED_BYTES:
        head = b""
        for piece in store.checked(artifact.digest, artifact.size):
            head += piece[: max(0, limit - len(head))]
        return head
    store.need_size(artifact.digest, artifact.size)
    with store.open_bytes(artifact.digest) as source:
        return source.read(limit)


def _nothing(row: Request, artifact: Artifact, file: FileFact) -> dict[str, Any]:
    return {}


def _image(row: Request, artifact: Artifact, file: FileFact) -> dict[str, Any]:
    media = artifact.media_type.partition(";")[0].strip().lower()
    if artifact.size > IMAGE_BYTES:
        return {"note": "Too large to be shown here."}
    if not head_of(artifact, 16).startswith(_IMAGES[media]):
        return {"note": "It is not the picture that its type says."}
    return {"kind": "image", "src": file.url}


def _html(row: Request, artifact: Artifact, file: FileFact) -> dict[str, Any]:
    if artifact.size > HTML_BYTES:
        return {"note": "Too large to be shown here."}
    head_of(artifact, 1)
    return {"kind": "html", "src": reverse("gates:evidence", args=[row.pk, artifact.digest])}


def _text_of(artifact: Artifact) -> tuple[str, bool]:
    text = head_of(artifact, TEXT_BYTES).decode("utf-8", "replace").removeprefix("\ufeff")
    return text, artifact.size > TEXT_BYTES


def _json(row: Request, artifact: Artifact, file: FileFact) -> dict[str, Any]:
    text, is_cut = _text_of(artifact)
    if is_cut:
        return {"note": "Too large to be shown here."}
    try:
        return {"kind": "json", "value": parse_json(text)}
    except JsonValueError:
        return {"note": "It is no JSON."}


def _markdown(row: Request, artifact: Artifact, file: FileFact) -> dict[str, Any]:
    text, is_cut = _text_of(artifact)
    return {"kind": "markdown", "text": text, "is_cut": is_cut}


def _plain(row: Request, artifact: Artifact, file: FileFact) -> dict[str, Any]:
    text, is_cut = _text_of(artifact)
    lines = text.split("\n")
    is_cut = is_cut or len(lines) > TEXT_LINES
    return {"kind": "text", "text": visible("\n".join(lines[:TEXT_LINES])), "is_cut": is_cut}


def _table(row: Request, artifact: Artifact, file: FileFact) -> dict[str, Any]:
    text, is_cut = _text_of(artifact)
    is_tabbed = artifact.name.lower().endswith(".tsv") or "tab-separated" in artifact.media_type
    try:
        lines = csv.reader(text.splitlines(), delimiter="\t" if is_tabbed else ",")
        found = [one for _, one in zip(range(TABLE_ROWS + 2), lines, strict=False)]
    except csv.Error:
        return {"note": "It is no table."}
    if not found:
        return {"note": "It is empty."}
    is_cut = is_cut or len(found) > TABLE_ROWS + 1 or any(len(one) > TABLE_COLUMNS for one in found)
    head, *rows = [_cells(one) for one in found[: TABLE_ROWS + 1]]
    return {"kind": "table", "columns": head, "rows": rows, "is_cut": is_cut}


def _cells(row: Iterable[str]) -> list[str]:
    cells = list(row)[:TABLE_COLUMNS]
    return [visible(one if len(one) <= _CELL else f"{one[: _CELL - 1]}…") for one in cells]


_SHOWN: Final = {
    "image": _image,
    "html": _html,
    "json": _json,
    "markdown": _markdown,
    "text": _plain,
    "table": _table,
}
