"""A file of a run as an answer: always a download, never a page of this site."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import suppress
from typing import Final

from django.core.handlers.asgi import ASGIRequest
from django.http import (
    HttpRequest,
    HttpResponseNotModified,
    JsonResponse,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags

from runs.artifacts import ranges, store
from runs.artifacts.ranges import RangeBeyond
from runs.artifacts.store import ArtifactChanged
from runs.models import Artifact
from runs.plaintext import visible

logger = logging.getLogger(__name__)

_MEDIA_TYPE: Final = r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}"


def answer(request: HttpRequest, row: Artifact) -> HttpResponseBase:
    """The bytes, a piece at a time; raises ArtifactMissing or ArtifactChanged.

    What fits into one piece is checked before anything is said. Of more the last piece is kept
    back until all was checked, so that changed bytes never arrive as if they were whole. Of a part
    (`Range`, one at a time) it is the last piece of the part. If-None-Match and If-Range know the
    bytes by their digest.
    """
    etag = f'"{row.digest}"'
    told: HttpResponseBase
    if _is_known(request, etag):
        told = HttpResponseNotModified()
        told["ETag"] = etag
        return told
    try:
        bounds = ranges.wanted(request, etag, row.size)
    except RangeBeyond as beyond:
        refusal = {"code": beyond.code, "message": str(beyond)}
        told = JsonResponse({"error": refusal}, status=416)
        told["Content-Range"] = f"bytes */{row.size}"
        return told
    # A part is compared as the whole is, and therefore with all that lies beside it.
    pieces = store.checked(row.digest, row.size)
    if bounds is not None:
        pieces = ranges.part(pieces, bounds)
    following = _following(next(pieces, b""), pieces, row.digest)
    # An event loop would read a synchronous iterator to its end before it sends the first byte.
    is_async = isinstance(request, ASGIRequest)
    told = StreamingHttpResponse(_asynchronous(following) if is_async else following)
    told["Content-Length"] = str(row.size)
    if bounds is not None:
        told.status_code = 206
        told["Content-Length"] = str(len(bounds))
        told["Content-Range"] = f"bytes {bounds.start}-{bounds.stop - 1}/{row.size}"
    known = re.fullmatch(_MEDIA_TYPE, row.media_type, re.IGNORECASE)
    name = " ".join(visible(row.name).split())
    told["Content-Type"] = row.media_type if known else "application/octet-stream"
    told["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    told["ETag"] = etag
    told["Accept-Ranges"] = "bytes"
    told["X-Content-Type-Options"] = "nosniff"
    told["Content-Security-Policy"] = "default-src 'none'; sandbox"
    told["Cache-Control"] = "no-store"
    return told


def _is_known(request: HttpRequest, etag: str) -> bool:
    """Whether the caller has the bytes; a proxy that packs an answer makes its ETag a weak one."""
    known = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in known or etag in (one.removeprefix("W/") for one in known)


def _following(first: bytes, pieces: Iterator[bytes], digest: str) -> Generator[bytes, None, None]:
    """The first piece and the others; it ends too early where the bytes are not whole.

    The client was told a length, and sees the connection end before it. An error raised here would
    reach it no sooner, and stop daphne from looking after its other connections.
    """
    yield first
    try:
        yield from pieces
    except (ArtifactChanged, OSError) as broken:
        logger.error("file not whole digest=%s error=%s", digest, broken)  # noqa: TRY400 - a trace says no more


async def _asynchronous(pieces: Generator[bytes, None, None]) -> AsyncGenerator[bytes, None]:
    try:
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            yield piece
    finally:
        # Whoever leaves in the middle of a piece leaves a thread that still reads it.
        with suppress(ValueError):
            pieces.close()
