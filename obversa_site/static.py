"""Static files served by the product itself, with or without `collectstatic`."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import django
from django.conf import settings
from django.http import HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from whitenoise.responders import StaticFile

FOR_GOOD = "max-age=315360000, public, immutable"
_MARKED = re.compile(r"^v-([0-9a-f]{12})/(.+)$", re.DOTALL)


class Files(CompressedManifestStaticFilesStorage):
    """Names with a fingerprint once the files were collected, plain names before that.

    So a fresh clone needs no build step, and a deployment that collects gets compressed files a
    browser may keep for ever; a module names the modules that it loads by theirs. The one process
    of `up` puts a mark of all files before the plain names, so that its pages ask for nothing twice
    either; whoever has another server for the files keeps plain names.
    """

    support_js_module_import_aggregation = True
    mark: ClassVar[str] = ""

    def stored_name(self, name: str) -> str:
        """Return the name under which the file is served."""
        if not self.hashed_files:
            return name
        stored: str = super().stored_name(name)
        return stored

    def url(self, name: str | None, force: bool = False) -> str:
        """Return the address of the file."""
        address: str = super().url(name, force)
        if not self.mark or self.hashed_files:
            return address
        return address.replace(settings.STATIC_URL, f"{settings.STATIC_URL}v-{self.mark}/", 1)

    @classmethod
    def mark_names(cls) -> None:
        """Have every file's address say which files these are, from now on in this process."""
        # The admin's files are Django's own.
        seen = hashlib.sha256(django.__version__.encode())
        for folder in map(Path, settings.STATICFILES_DIRS):
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    seen.update(f"{path.relative_to(folder)}\0".encode())
                    seen.update(hashlib.sha256(path.read_bytes()).digest())
        cls.mark = seen.hexdigest()[:12]


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise that answers with whole bodies.

    Under ASGI its file iterators would be read through at once anyway, with a warning for each.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer for a file, also at an address with a mark; hand anything else on.

        A page that was open while the product was replaced gets today's file, and may not keep it.
        """
        found = _MARKED.match(request.path_info.removeprefix(self.static_prefix))
        file = self.files.get(f"{self.static_prefix}{found[2]}") if found else None
        if found is None or file is None:
            answer: HttpResponseBase = super().__call__(request)
            return answer
        response = self.serve(file, request)
        if found[1] == Files.mark and response.status_code in (200, 304):
            response.headers["Cache-Control"] = FOR_GOOD
        return response

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
