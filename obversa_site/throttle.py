"""Passwords are guessed slowly: a name takes ten wrong ones from an address, then waits."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import logging
from collections.abc import Callable
from typing import Any, Final

import redis
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.http import HttpRequest

logger = logging.getLogger(__name__)

WRONG: Final = 10
# Codes of links cannot be guessed; this keeps whoever tries from costing the database anything.
WRONG_CODES: Final = 100
WAIT_SECONDS: Final = 10 * 60


class Numbers:
    """What is kept in Redis: numbers. Django's own way would run code that a reader put there."""

    def dumps(self, value: int) -> int:
        return int(value)

    def loads(self, kept: bytes) -> int:
        return int(kept)


class PatientBackend(ModelBackend):
    """Django's own check of a password, for the sign-in page and the admin's alike.

    A guess is counted before it is looked at, so that many at once are no more than ten. One that
    is refused costs no hashing; a sign-in link still works.
    """

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **credentials: Any,
    ) -> User | None:
        key = _key(request, username)
        if _wrong(key) >= WRONG or (username and password and _count(key) > WRONG):
            return None
        user = super().authenticate(request, username=username, password=password, **credentials)
        if user is not None:
            _forget(key)
        return user


def has_to_wait(request: HttpRequest | None, username: str | None) -> bool:
    """Whether this name had too many wrong passwords from there."""
    return _wrong(_key(request, username)) >= WRONG


def too_many_codes(request: HttpRequest) -> bool:
    """Whether too many codes of sign-in links from there were wrong."""
    return _wrong(_code_key(request)) >= WRONG_CODES


def count_wrong_code(request: HttpRequest) -> None:
    """Count a code that signs nobody in."""
    _count(_code_key(request))


def place_of(request: HttpRequest | None) -> str:
    """Where a request comes from: an address, of IPv6 the network that one customer has."""
    address = request.META.get("REMOTE_ADDR", "") if request is not None else ""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip), 64), strict=False))


def _wrong(key: str) -> int:
    return max(_everywhere(lambda cache: int(cache.get(key, 0))))


def _count(key: str) -> int:
    return max(_everywhere(lambda cache: _one_more(cache, key)))


def _one_more(cache: BaseCache, key: str) -> int:
    # A count that ends between the two lines began ten minutes ago: the next guess begins anew.
    cache.add(key, 0, WAIT_SECONDS)
    with contextlib.suppress(ValueError):
        return cache.incr(key)
    return 1


def _forget(key: str) -> None:
    _everywhere(lambda cache: int(cache.delete(key)))


def _everywhere(do: Callable[[BaseCache], int]) -> list[int]:
    """In this process, and where all processes count together; that may be away."""
    found = [do(caches["default"])]
    if "shared" in settings.CACHES:
        try:
            found.append(do(caches["shared"]))
        except (redis.RedisError, OSError) as error:
            logger.warning("wrong passwords are counted by each process alone error=%r", error)
    return found


def _code_key(request: HttpRequest) -> str:
    return f"wrong-codes-{_hashed(place_of(request))}"


def _key(request: HttpRequest | None, username: str | None) -> str:
    text = f"{place_of(request)}\0{(username or '').casefold()}"
    return f"wrong-passwords-{_hashed(text)}"


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
