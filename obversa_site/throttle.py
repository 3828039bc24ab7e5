"""Passwords are guessed slowly: a name takes ten wrong ones from an address, then waits."""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any, Final

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.cache import cache
from django.http import HttpRequest

WRONG: Final = 10
WAIT_SECONDS: Final = 10 * 60


class PatientBackend(ModelBackend):
    """Django's own check of a password, for the sign-in page and the admin's alike.

    Each process counts for itself. A refused guess costs no hashing; a sign-in link still works.
    """

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **credentials: Any,
    ) -> User | None:
        if has_to_wait(request, username):
            return None
        user = super().authenticate(request, username=username, password=password, **credentials)
        if user is not None:
            cache.delete(_key(request, username))
        elif username and password:
            _count(_key(request, username))
        return user


def has_to_wait(request: HttpRequest | None, username: str | None) -> bool:
    """Whether this name had too many wrong passwords from there."""
    wrong: int = cache.get(_key(request, username), 0)
    return wrong >= WRONG


def _count(key: str) -> None:
    # A count that ends between the two lines began ten minutes ago: the next guess begins anew.
    cache.add(key, 0, WAIT_SECONDS)
    with contextlib.suppress(ValueError):
        cache.incr(key)


def _key(request: HttpRequest | None, username: str | None) -> str:
    address = request.META.get("REMOTE_ADDR", "") if request is not None else ""
    text = f"{address}\0{(username or '').casefold()}"
    return f"wrong-passwords-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
