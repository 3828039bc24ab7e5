"""The changelog of a release: what came in since the tag before it."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from runs.engines.command import met
from runs.examples._git import Git
from runs.kernel.jsonable import JSONValue

LISTED: Final = 200
_WIDTH: Final = 200
_FIELDS: Final = ("%H", "%cI", "%an", "%s")


def plain(text: str, width: int = _WIDTH) -> str:
    """A stranger's line as one plain line: no control or direction marks, not too long."""
    shown = "".join(" " if unicodedata.category(mark)[0] == "C" else mark for mark in text)
    line = " ".join(shown.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def tag_before(git: Git, commit: str, tag: str) -> str | None:
    """The nearest tag in the commit's history, other than the one this release makes."""
    result = git.attempt("describe", "--tags", "--abbrev=0", f"--exclude={tag}", commit)
    return result.stdout.strip() or None if met(result) else None


def changes(git: Git, commit: str, tag: str) -> dict[str, JSONValue]:
    """The commits since the tag before: how many, and the newest of them."""
    since = tag_before(git, commit, tag)
    span = commit if since is None else f"refs/tags/{since}..{commit}"
    count = int(git.run("rev-list", "--count", span, "--", doing="Counting the commits"))
    commits = _listed(git, span)
    return {
        "since": since,
        "count": count,
        "commits": list(commits),
        "omitted": count - len(commits),
    }


def described(git: Git, commit: str) -> dict[str, JSONValue]:
    """One commit: its id, who wrote it, when and what for."""
    (found,) = _listed(git, commit, limit=1)
    return {**found, "id": commit, "short": commit[:12]}


def _listed(git: Git, span: str, limit: int = LISTED) -> list[dict[str, JSONValue]]:
    printed = git.run(
        *("log", "-z", f"--max-count={limit}", f"--format={'%x00'.join(_FIELDS)}", span, "--"),
        doing="Reading the history",
    )
    fields = printed.split("\0")
    rows = [fields[start : start + 4] for start in range(0, len(fields) - 3, 4)]
    return [
        {
            "id": row[0][:12],
            "at": row[1].strip(),
            "author": plain(row[2], 80),
            "subject": plain(row[3]),
        }
        for row in rows
    ]


def escaped(text: str) -> str:
    """A plain line that stays plain inside Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|!~&@])", r"\\\1", text)
