"""A part of a file, as a client asks for it that has the rest (RFC 9110, section 14)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from django.http import HttpRequest

# One part, with digits that no integer of ours minds.
_ONE: Final = re.compile(r"bytes\s*=\s*(\d{0,18})-(\d{0,18})\s*", re.ASCII | re.IGNORECASE)


class RangeBeyond(ValueError):
    """The part that was asked for begins behind the end of the file."""

    code = "range-beyond"


def wanted(request: HttpRequest, etag: str, size: int) -> range | None:
    """The bytes that are asked for; None for all of them. Raises RangeBeyond.

    A server may answer with the whole where it does not understand the part, or gives no such: for
    several parts at once, and for a part of other bytes than these (`If-Range`).
    """
    found = _ONE.fullmatch(request.headers.get("Range", "").strip())
    if request.method != "GET" or found is None or not (found[1] or found[2]):
        return None
    # Files have no time of their own here, so a date names none of them.
    if request.headers.get("If-Range", etag).strip() != etag:
        return None
    if not found[1]:
        first, end = max(size - int(found[2]), 0), size
    else:
        first = int(found[1])
        if found[2] and int(found[2]) < first:
            return None
        end = min(int(found[2]) + 1, size) if found[2] else size
    if first >= end:
        raise RangeBeyond(f"The file has {size:,} bytes, and none from {first:,} on.")
    return range(first, end)


def part(pieces: Iterator[bytes], bounds: range) -> Iterator[bytes]:
    """Those of the bytes, the last of them only once `pieces` has come to its end."""
    at, held = 0, b""
    for piece in pieces:
        cut = piece[max(bounds.start - at, 0) : max(bounds.stop - at, 0)]
        at += len(piece)
        if cut:
            if held:
                yield held
            held = cut
    if held:
        yield held
