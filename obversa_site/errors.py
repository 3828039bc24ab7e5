"""Error pages: what happened, the number to quote, the way back."""

from __future__ import annotations

import logging
import secrets
import sys
from typing import Final

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from runs.errors import RunArchived

logger = logging.getLogger(__name__)

# When it is worth asking again: a restart takes a second or two.
AWAY_SECONDS: Final = 2


def _in_json(request: HttpRequest, status: int, code: str, message: str) -> HttpResponse | None:
    """The same for a program: what never reached the API's own answers (obversa_site/api.py)."""
    if not request.path.startswith("/api/"):
        return None
    return JsonResponse({"error": {"code": code, "message": message}}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400."""
    told = _in_json(request, 400, "bad-request", "This is no request as this site takes it.")
    return told or render(request, "errors/400.html", status=400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403, with the reason where there is one for people."""
    return render(request, "errors/403.html", {"reason": str(exception)}, status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404, whether there is nothing or it is somebody else's."""
    told = _in_json(request, 404, "not-found", "There is nothing at this address.")
    return told or render(request, "errors/404.html", status=404)


def too_large(request: HttpRequest, message: str) -> HttpResponse:
    """Answer 413, with how large a request may be."""
    return render(request, "errors/413.html", {"reason": message}, status=413)


def no_file(request: HttpRequest, exception: Exception, status: int) -> HttpResponse:
    """Answer that the bytes of a file are not there (404), or not those that were kept (409)."""
    page = {"reason": str(exception), "status": status}
    return render(request, "errors/file.html", page, status=status)


def in_archive(request: HttpRequest, exception: RunArchived) -> HttpResponse:
    """Answer 410 for what lies in the archive, with who brings it back."""
    page = {"details": exception.details, "receipt_url": exception.receipt_url}
    return render(request, "errors/410.html", page, status=410)


def failed(request: HttpRequest) -> HttpResponse:
    """Answer 500 with a number that stands in the log as well; 503 while the database is away."""
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return _away(request)
    number = secrets.token_hex(4)
    logger.error("page failed error_id=%s path=%s", number, request.path)
    told = _in_json(request, 500, "failed", f"Something failed here. Its number is {number}.")
    return told or _bare("errors/500.html", 500, error_id=number)


def _bare(template: str, status: int, **page: str) -> HttpResponse:
    """A page that asks nobody who is looking: what answers that may be what failed."""
    return HttpResponse(render_to_string(template, page), status=status)


def _away(request: HttpRequest) -> HttpResponse:
    logger.error("database away path=%s", request.path)
    told = _in_json(request, 503, "unavailable", "The database is away just now. Try again.")
    answer = told or _bare("errors/503.html", 503)
    answer.headers["Retry-After"] = str(AWAY_SECONDS)
    return answer


def no_csrf(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that came without its token, from an old page or another site."""
    words = (
        "The form was too old or came from another site. Go back, reload the page, send it again."
    )
    return render(request, "errors/403.html", {"reason": words}, status=403)
