"""Static files served by the product itself, with or without `collectstatic`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage

if TYPE_CHECKING:
    from django.http import HttpRequest
    from whitenoise.responders import StaticFile


class Files(CompressedManifestStaticFilesStorage):
    """Names with a fingerprint once the files were collected, plain names before that.

    So a fresh clone needs no build step, and a deployment that collects gets compressed files a
    browser may keep for ever.
    """

    def stored_name(self, name: str) -> str:
        """Return the name under which the file is served."""
        if not self.hashed_files:
            return name
        stored: str = super().stored_name(name)
        return stored


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise that answers with whole bodies.

    Under ASGI its file iterators would be read through at once anyway, with a warning for each.
    """

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """Answer with the file, its headers and nothing else."""
        found = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file as file:
                body = file.read()
        response = HttpResponse(body, status=int(found.status))
        del response["content-type"]
        for name, value in found.headers:
            response[name] = value
        return response
