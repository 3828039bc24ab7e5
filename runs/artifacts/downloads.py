"""A file of a run as an answer: always a download, never a page of this site."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import suppress
from typing import Final

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponseNotModified, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags

from runs.artifacts import store
from runs.artifacts.store import ArtifactChanged
from runs.models import Artifact
from runs.plaintext import visible

logger = logging.getLogger(__name__)

_MEDIA_TYPE: Final = r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}"


def answer(request: HttpRequest, row: Artifact) -> HttpResponseBase:
    """The bytes, a piece at a time; raises ArtifactMissing or ArtifactChanged.

    What fits into one piece is checked before anything is said. Of more the last piece is kept
    back until all was checked, so that changed bytes never arrive as if they were whole.
    """
    etag = f'"{row.digest}"'
    told: HttpResponseBase
    if etag in parse_etags(request.headers.get("If-None-Match", "")):
        told = HttpResponseNotModified()
        told["ETag"] = etag
        return told
    pieces = store.checked(row.digest, row.size)
    following = _following(next(pieces, b""), pieces, row.digest)
    # An event loop would read a synchronous iterator to its end before it sends the first byte.
    is_async = isinstance(request, ASGIRequest)
    told = StreamingHttpResponse(_asynchronous(following) if is_async else following)
    known = re.fullmatch(_MEDIA_TYPE, row.media_type, re.IGNORECASE)
    name = " ".join(visible(row.name).split())
    told["Content-Type"] = row.media_type if known else "application/octet-stream"
    told["Content-Length"] = str(row.size)
    told["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    told["ETag"] = etag
    # A part of a file cannot be checked against the digest of the whole.
    told["Accept-Ranges"] = "none"
    told["X-Content-Type-Options"] = "nosniff"
    told["Content-Security-Policy"] = "default-src 'none'; sandbox"
    told["Cache-Control"] = "no-store"
    return told


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
