"""The work a workflow is for: its text, and the files it expects written (workflows.md W16-W19)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runs.kernel.errors import DeclarationError

_FENCE = "---"


@dataclass(frozen=True, slots=True)
class Brief:
    """What every model of a team reads."""

    text: str
    files: tuple[str, ...] = ()


def to_brief(given: Any) -> Brief:
    """A brief, from itself or from a text; raises DeclarationError for an empty one (W2)."""
    brief = Brief(given) if isinstance(given, str) else given
    if not isinstance(brief, Brief):
        raise DeclarationError("a brief is text, or what brief_from_file() read.")
    if not isinstance(brief.text, str) or not brief.text.strip():
        raise DeclarationError("the brief is empty.")
    return Brief(brief.text.strip(), workspace_paths("the brief", brief.files))


def read_brief(text: str, where: str) -> Brief:
    """A brief from the text of a Markdown file; front matter may carry `files` (W16-W18)."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[0] != _FENCE:
        return to_brief(text)
    try:
        end = lines.index(_FENCE, 1)
    except ValueError:
        raise DeclarationError(f"the front matter of {where} is not closed by {_FENCE}.") from None
    files: tuple[str, ...] = ()
    seen = False
    for line in lines[1:end]:
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon:
            raise DeclarationError(f"the line {line!r:.80} in the front matter of {where} has no :")
        if key.strip() != "files":
            raise DeclarationError(
                f"the front matter of {where} takes files, not {key.strip()!r:.80}."
            )
        if seen:
            raise DeclarationError(f"the front matter of {where} names files twice.")
        seen, files = True, _files(value.strip(), where)
    return to_brief(Brief("\n".join(lines[end + 1 :]), files))


def _files(value: str, where: str) -> tuple[str, ...]:
    if value.startswith("["):
        try:
            listed = json.loads(value)
        except ValueError:
            listed = None
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise DeclarationError(f"files in the front matter of {where} is no list of paths.")
    else:
        listed = [part.strip() for part in value.split(",")]
    if not listed or not all(listed):
        raise DeclarationError(f"files in the front matter of {where} names no file.")
    return workspace_paths(f"files of {where}", listed)


def workspace_paths(what: str, given: Iterable[str]) -> tuple[str, ...]:
    """Paths below the workspace; raises DeclarationError for others and doubled ones (W19)."""
    if isinstance(given, str):
        raise DeclarationError(f"{what} is a list of paths.")
    paths = tuple(given)
    for path in paths:
        if not isinstance(path, str) or not path.strip():
            raise DeclarationError(f"{what} holds an empty path.")
        parts = path.split("/")
        if path.startswith("/") or "\\" in path or "\0" in path or path[1:2] == ":":
            raise DeclarationError(f"{what}: {path!r} is no path below the workspace.")
        if ".." in parts:
            raise DeclarationError(f"{what}: {path!r} leaves the workspace.")
        if "." in parts or "" in parts:
            raise DeclarationError(f"{what}: {path!r} is no plain path; leave out . and //.")
    if doubled := sorted({path for path in paths if paths.count(path) > 1}):
        raise DeclarationError(f"{what} names {', '.join(doubled)} twice.")
    return paths
