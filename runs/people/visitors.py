"""Who looks at a page, and who sits behind a socket now."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from structlog.contextvars import bind_contextvars

from runs.people.principals import Principal

_CALLER: Final = "_obversa_caller"


def caller(request: HttpRequest) -> Principal:
    """Who sent this request of a browser; one for all its parts, so rights are read once."""
    kept: Any = request.__dict__
    if _CALLER not in kept:
        kept[_CALLER] = Principal.for_user(request.user)
        bind_contextvars(actor=kept[_CALLER].actor)
    who: Principal = kept[_CALLER]
    return who


def person_behind(scope: dict[str, Any]) -> User | AnonymousUser:
    """The person the socket's session belongs to; nobody once it has ended.

    Read anew each time: sessions end and people leave while a page stays open.
    """
    key = getattr(scope.get("session"), "session_key", None)
    if key is None:
        return AnonymousUser()
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return get_user(request)
