"""Who sits behind a socket now: sessions end and people leave while a page stays open."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest


def person_behind(scope: dict[str, Any]) -> User | AnonymousUser:
    """The person the socket's session belongs to, read anew; nobody once it has ended."""
    key = getattr(scope.get("session"), "session_key", None)
    if key is None:
        return AnonymousUser()
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return get_user(request)
