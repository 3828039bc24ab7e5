"""What every response carries, and how large a request may be."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.http.request import UnreadablePostError
from django.middleware.gzip import GZipMiddleware

from gates.errors import CursorRefused
from obversa_site.errors import bad_request, forbidden, in_archive, no_file, not_found, too_large
from runs.access import Forbidden, NotVisible
from runs.artifacts.store import ArtifactChanged, ArtifactMissing
from runs.errors import RunArchived
from runs.replies import PageUnknown

Handler = Callable[[HttpRequest], HttpResponseBase]

MAY_LOAD = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "frame-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
CONTENT_SECURITY_POLICY = "; ".join(f"{what} {where}" for what, where in MAY_LOAD.items())
PERMISSIONS_POLICY = ", ".join(
    f"{feature}=()"
    for feature in ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
)


def page_policy(get_response: Handler) -> Handler:
    """Say to the browser what a page may load, that it may use no device and keeps nothing."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        # What a person sees is theirs alone, unless the answer says otherwise of itself.
        response.headers.setdefault("Cache-Control", "no-store, private")
        return response

    return answer


class Smaller(GZipMiddleware):
    """Send pages compressed; what programs read, files and streams go as they are.

    A page of a run with thousands of steps is a twentieth of its size then. The length of what is
    sent tells nothing of a page's secrets: Django adds a random length to each and masks the token
    of its forms, and no other site can have a browser ask here with somebody's session.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Compress a page, and nothing else."""
        if response.streaming or not response.headers.get("Content-Type", "").startswith(
            "text/html"
        ):
            return response
        smaller: HttpResponseBase = super().process_response(request, response)
        return smaller


class Refusals:
    """What is not this person's to see is not there; what is not theirs to do is forbidden."""

    def __init__(self, get_response: Handler) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\0" in request.path_info and not request.path_info.startswith("/api/"):
            # PostgreSQL fails on a text with U+0000, and no address has one.
            return not_found(request, Http404())
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Turn the refusals of the access rules into the pages people know."""
        if isinstance(error, NotVisible):
            return not_found(request, error)
        if isinstance(error, Forbidden):
            return forbidden(request, error)
        if isinstance(error, ArtifactMissing | ArtifactChanged):
            return no_file(request, error, 404 if isinstance(error, ArtifactMissing) else 409)
        if isinstance(error, RunArchived):
            return in_archive(request, error)
        if isinstance(error, CursorRefused | PageUnknown):
            return bad_request(request, error)
        return None


def body_limit(get_response: Handler) -> Handler:
    """Refuse a body over the limit with 413, whether or not it announces its length.

    Django would say 400, and only where a view happens to read the body.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        try:
            request.body  # noqa: B018  reading it is the check
        except RequestDataTooBig:
            return _too_large(request)
        except UnreadablePostError:
            return HttpResponse(status=400)  # the client went away; nobody reads this
        return get_response(request)

    return answer


def _too_large(request: HttpRequest) -> HttpResponse:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // (1024 * 1024)
    message = f"The request is larger than {limit} MiB. Send less, or a link to it."
    if request.path.startswith("/api/"):
        return JsonResponse({"error": {"code": "too-large", "message": message}}, status=413)
    return too_large(request, message)
