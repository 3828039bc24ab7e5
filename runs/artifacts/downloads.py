"""A file of a run as an answer: always a download, never a page of this site."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import IO, Final

from django.core.handlers.asgi import ASGIRequest
from django.http import FileResponse, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from runs.artifacts import store
from runs.models import Artifact
from runs.plaintext import visible

_MEDIA_TYPE: Final = r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}"


def answer(request: HttpRequest, row: Artifact) -> HttpResponseBase:
    """The bytes, a piece at a time; raises ArtifactMissing."""
    content = store.open_bytes(row.digest)
    told: HttpResponseBase
    # An event loop would read a synchronous file to its end before it sends the first byte.
    if isinstance(request, ASGIRequest):
        told = StreamingHttpResponse(_chunks(content))
    else:
        told = FileResponse(content)
    known = re.fullmatch(_MEDIA_TYPE, row.media_type, re.IGNORECASE)
    name = " ".join(visible(row.name).split())
    told["Content-Type"] = row.media_type if known else "application/octet-stream"
    told["Content-Length"] = str(row.size)
    told["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    told["X-Content-Type-Options"] = "nosniff"
    told["Content-Security-Policy"] = "default-src 'none'; sandbox"
    told["Cache-Control"] = "no-store"
    return told


async def _chunks(content: IO[bytes]) -> AsyncGenerator[bytes, None]:
    with content:
        while chunk := await asyncio.to_thread(content.read, store.CHUNK):
            yield chunk
