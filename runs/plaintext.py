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
        plain = without_marks(line)
        if plain:
            return plain if len(plain) <= limit else plain[: limit - 1] + "\u2026"
    return ""


def without_marks(line: str) -> str:
    """One line of Markdown as its reader would say it; what only looks like a mark stays."""
    parts = _CODE.split(_ESCAPED.sub(_put_away, _START.sub("", line)))
    # Every second part stood between backticks, where nothing is a mark.
    parts[::2] = [_plain(part) for part in parts[::2]]
    return "".join(parts).translate(_PUT_BACK).strip()


def _put_away(found: re.Match[str]) -> str:
    return found[0] if found[1] is None else chr(_AWAY + _MARKS.index(found[1]))


def _plain(part: str) -> str:
    # Twice: emphasis may stand inside emphasis.
    return _STRONG.sub(_inner, _STRONG.sub(_inner, _LINK.sub(r"\1", part)))


def _inner(found: re.Match[str]) -> str:
    return found[1] or found[2] or found[3]


_START: Final = re.compile(r"^\s{0,3}(?:#{1,6}\s+|>\s?|[-*+]\s+)")
# A mark behind a backslash is itself. Meanwhile it is one of the 32 controls that visible()
# spells out, so none of them stands in the text.
_MARKS: Final = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_AWAY: Final = 0x80
_PUT_BACK: Final = {_AWAY + place: mark for place, mark in enumerate(_MARKS)}
_ESCAPED: Final = re.compile(r"`+[^`]+`+|\\([!-/:-@\[-`{-~])")
_CODE: Final = re.compile(r"`+([^`]+)`+")
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
# A name such as a_b_c is no emphasis, and neither is 2 * 3 * 4.
_STRONG: Final = re.compile(
    r"\*{1,3}(?=\S)([^*]+)(?<=\S)\*{1,3}"
    r"|(?<!\w)_{1,3}(?=\S)([^_]+(?:_[^_]+)*)(?<=\S)_{1,3}(?!\w)"
    r"|~~(?=\S)([^~]+)(?<=\S)~~"
)
