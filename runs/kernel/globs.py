"""Path patterns: `**` crosses directories, `*` stays in a segment, `?` is one character (R79)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator


def compiled(globs: Iterable[str]) -> re.Pattern[str]:
    """One pattern that matches a whole path (segments joined by `/`) when any glob does."""
    return re.compile("|".join(f"(?:{''.join(_parts(glob))})" for glob in globs), re.DOTALL)


def _parts(glob: str) -> Iterator[str]:
    at = 0
    while at < len(glob):
        if glob.startswith("**", at):
            at += 2
            while glob.startswith("*", at):
                at += 1
            if glob.startswith("/", at):
                at += 1
                yield "(?:.*/)?"
            else:
                yield ".*"
            continue
        mark = glob[at]
        at += 1
        yield {"*": "[^/]*", "?": "[^/]"}.get(mark, re.escape(mark))
