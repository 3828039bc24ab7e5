"""Strangers' text made safe to read: nothing invisible turns it into something else."""

from __future__ import annotations

import re
from typing import Final

# Marks that reverse the reading order, hide text or end a line; line breaks and tabs stay.
_HIDDEN: Final = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f"
    "\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]"
)
# More combining marks in a row than any script needs grow over the lines around them.
_PILE: Final = re.compile(
    "([\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]{4})"
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+"
)


def visible(text: str) -> str:
    """The text with hidden marks spelled out as `<U+202E>` and piles of accents cut."""
    return _PILE.sub(r"\1", _HIDDEN.sub(lambda mark: f"<U+{ord(mark[0]):04X}>", text))


def first_line(text: str, limit: int = 300) -> str:
    """The first line that says something, without Markdown's marks."""
    for whole in visible(text).splitlines():
        # Cut first: the pattern's time grows with the square of a line of nothing but brackets.
        line = whole[: limit * 4]
        plain = _MARKS.sub("", _LINK.sub(r"\1", line)).strip()
        if plain:
            return plain if len(plain) <= limit else plain[: limit - 1] + "\u2026"
    return ""


_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKS: Final = re.compile(r"^\s{0,3}(?:#{1,6}\s+|>\s?|[-*+]\s+)|\*\*|__|`")
