"""How often one caller may call the API: buckets of tokens, filled evenly and emptied by calls.

A person counts as one caller with all their keys, a key of nobody by itself, and who is not known
by address. Processes count together in Redis where there is one (`CHANNEL_REDIS_URL`), else each
for itself. A Redis that does not answer lets calls through: it is no reason to stop work.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol, Self

import redis
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja.throttling import BaseThrottle

from obversa_site.throttle import place_of

logger = logging.getLogger(__name__)

_UNITS: Final = {"s": 1, "sec": 1, "min": 60, "m": 60, "hour": 3600, "h": 3600}
# What makes work for others, keeps a connection, or reads much: method and route below /api/v1/.
COSTLY: Final = frozenset(
    {
        ("POST", "runs"),
        ("POST", "runs/<uuidstr:id>/rerun"),
        ("POST", "requests"),
        ("GET", "runs/<uuidstr:id>/stream"),
        ("GET", "runs/<uuidstr:id>/artifacts/<digest>"),
    }
)
REMEMBERED: Final = 100_000
REDIS_SECONDS: Final = 0.25
# After a failure nobody waits for Redis again for so long.
AWAY_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls in so many seconds, and at most `burst` of them at once."""

    name: str
    count: int
    seconds: int
    burst: int

    @classmethod
    def of(cls, name: str, text: str) -> Self | None:
        """The rate that a setting says, such as `600/min` or `600/min burst 100`; 0 is none."""
        if text.strip() in ("", "0"):
            return None
        told, _, burst = text.partition("burst")
        count, slash, unit = told.strip().partition("/")
        try:
            made = cls(name, int(count), _UNITS[unit.strip()], int(burst or count))
        except (KeyError, ValueError):
            made = None
        if made is None or not slash or made.count < 1 or made.burst < 1:
            raise ImproperlyConfigured(
                f"{text!r} is no rate: write 600/min, 20/s or 600/min burst 100; 0 for none."
            )
        return made

    @property
    def interval(self) -> float:
        """The seconds in which one token comes."""
        return self.seconds / self.count


@dataclass(frozen=True, slots=True)
class Spent:
    """What became of one call: whether it may be, what is left, and the seconds to wait."""

    rate: Rate
    is_let: bool
    left: int
    wait: float
    # Until the bucket is full again.
    full_in: float


class Buckets(Protocol):
    """Where the buckets are."""

    def spend(self, rate: Rate, caller: str) -> Spent:
        """Take a token out of the caller's bucket, if there is one."""


def _spent(rate: Rate, full_at: float, now: float) -> tuple[Spent, float]:
    """A bucket is one number: when it is full again. Returns that number after this call too."""
    after = max(full_at, now) + rate.interval
    wait = after - rate.burst * rate.interval - now
    # What a clock's fractions make of nothing is nothing.
    is_let = wait < 1e-6
    kept = after if is_let else max(full_at, now)
    left = int((rate.burst * rate.interval - (kept - now)) / rate.interval + 1e-6)
    return Spent(rate, is_let, max(0, left), max(0.0, wait), kept - now), kept


class OwnBuckets:
    """Those of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._full_at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def spend(self, rate: Rate, caller: str) -> Spent:
        now, key = time.monotonic(), (rate.name, caller)
        with self._lock:
            spent, self._full_at[key] = _spent(rate, self._full_at.get(key, 0.0), now)
            self._full_at.move_to_end(key)
            while len(self._full_at) > REMEMBERED:
                self._full_at.popitem(last=False)
        return spent


class SharedBuckets:
    """Those of all processes, by Redis and its clock."""

    _SPEND: Final = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local after = full_at + interval
if after - burst * interval - now < 0.000001 then
    redis.call('SET', KEYS[1], string.format('%.6f', after), 'PX', math.ceil((after - now) * 1000))
end
return {string.format('%.6f', full_at), string.format('%.6f', now)}
"""

    def __init__(self, address: str) -> None:
        self._redis = redis.Redis.from_url(
            address, socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS
        )
        self._script = self._redis.register_script(self._SPEND)
        self._away_until = 0.0

    def spend(self, rate: Rate, caller: str) -> Spent:
        if time.monotonic() < self._away_until:
            return _let(rate)
        key = f"obversa:rate:{rate.name}:{caller}"
        try:
            found: Any = self._script(keys=[key], args=[rate.interval, rate.burst])
        except (redis.RedisError, OSError) as error:
            self._away_until = time.monotonic() + AWAY_SECONDS
            logger.warning("calls are not counted, Redis is away error=%r", error)
            return _let(rate)
        full_at, now = (float(text) for text in found)
        return _spent(rate, full_at, now)[0]


def _let(rate: Rate) -> Spent:
    return Spent(rate, is_let=True, left=rate.burst, wait=0.0, full_in=0.0)


@cache
def buckets(address: str) -> Buckets:
    """The buckets in the Redis at this address, or in this process without one."""
    return SharedBuckets(address) if address else OwnBuckets()


@cache
def _rate(name: str, text: str) -> Rate | None:
    return Rate.of(name, text)


def calls() -> Rate | None:
    """How often anything may be called."""
    return _rate("calls", settings.OBVERSA_API_RATE)


def costly() -> Rate | None:
    """How often that may be called which costs more."""
    return _rate("costly", settings.OBVERSA_API_COSTLY_RATE)


def spend(request: HttpRequest, caller: str, rates: list[Rate | None]) -> float:
    """Count a call; returns the seconds to wait before it may be, 0 when it may."""
    found = [
        buckets(settings.OBVERSA_RATE_REDIS_URL).spend(rate, caller)
        for rate in rates
        if rate is not None
    ]
    request.spent = found  # type: ignore[attr-defined]  # told in the answer's headers
    return max((one.wait for one in found if not one.is_let), default=0.0)


_wait: ContextVar[float | None] = ContextVar("wait", default=None)


class PerCaller(BaseThrottle):
    """The rates of every operation, by who calls it."""

    def allow_request(self, request: HttpRequest) -> bool:
        """Whether the caller has tokens left for this."""
        rates = [calls(), costly() if _is_costly(request) else None]
        seconds = spend(request, caller_of(request), rates)
        _wait.set(seconds or None)
        return not seconds

    def wait(self) -> float | None:
        """The seconds after which the call that was refused just now may be."""
        return _wait.get()


def caller_of(request: HttpRequest) -> str:
    """Whose bucket it is: a person's, with all their keys, a key's, or an address's."""
    who = getattr(request, "auth", None)
    if who is None:
        return f"address:{place_of(request)}"
    if who.user is not None:
        return f"user:{who.user.pk}"
    return f"router:{who.router}" if who.router else f"key:{who.key_name}"


def _is_costly(request: HttpRequest) -> bool:
    route = "" if request.resolver_match is None else request.resolver_match.route
    return (request.method, route.partition("api/v1/")[2]) in COSTLY


def stranger_waits(request: HttpRequest) -> float:
    """Count a call of somebody who is not known; the seconds to wait, where that is too many."""
    return spend(request, caller_of(request), [calls()])


def tell(request: HttpRequest, answer: HttpResponseBase) -> None:
    """Say in the answer what is left (draft-ietf-httpapi-ratelimit-headers-10)."""
    found: list[Spent] = getattr(request, "spent", [])
    if not found:
        return
    answer["RateLimit-Policy"] = ", ".join(
        f'"{one.rate.name}";q={one.rate.burst};w={math.ceil(one.rate.burst * one.rate.interval)}'
        for one in found
    )
    answer["RateLimit"] = ", ".join(
        f'"{one.rate.name}";r={one.left};t={math.ceil(one.wait or one.full_in)}' for one in found
    )
