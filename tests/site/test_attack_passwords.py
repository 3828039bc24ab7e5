"""Guessing passwords at several web processes at once, and while Redis is away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import caches
from django.test import Client, override_settings

from obversa_site import throttle
from tests import flows
from tests.needs import need

PASSWORD = "correct horse battery staple"


@contextmanager
def shared(address: str) -> Iterator[None]:
    """What settings make of a Redis; a prefix of its own keeps runs on one machine apart."""
    made = {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": address,
        "KEY_PREFIX": uuid4().hex,
        "OPTIONS": {"serializer": "obversa_site.throttle.Numbers", "socket_connect_timeout": 0.25},
    }
    with override_settings(CACHES={**settings.CACHES, "shared": made}):
        caches["default"].clear()
        yield
        caches["default"].clear()


def another_process() -> None:
    """A web process that has counted nothing itself."""
    caches["default"].clear()


def attempt(password: str = "guess", **extra: Any) -> int:
    given = {"username": "ada", "password": password}
    return int(Client().post("/sign-in/", given, **extra).status_code)


@pytest.mark.redis
@pytest.mark.django_db
def test_all_processes_count_together() -> None:
    User.objects.create_user("ada", password=PASSWORD)
    with shared(need("redis")):
        statuses = []
        for _ in range(throttle.WRONG):
            another_process()
            statuses.append(attempt())
        another_process()

        assert statuses == [422] * (throttle.WRONG - 1) + [429]
        assert attempt(PASSWORD) == 429
        assert attempt(PASSWORD, REMOTE_ADDR="192.0.2.7") == 302


@pytest.mark.redis
@pytest.mark.django_db
def test_a_right_password_is_heard_of_by_all() -> None:
    User.objects.create_user("ada", password=PASSWORD)
    with shared(need("redis")):
        for _ in range(2):
            for _ in range(throttle.WRONG - 1):
                another_process()
                assert attempt() == 422
            assert attempt(PASSWORD) == 302


@pytest.mark.django_db
def test_without_redis_each_process_counts_on(caplog: pytest.LogCaptureFixture) -> None:
    User.objects.create_user("ada", password=PASSWORD)
    with shared("redis://127.0.0.1:1/0"):
        statuses = [attempt() for _ in range(throttle.WRONG)]

        assert statuses == [422] * (throttle.WRONG - 1) + [429]
        assert attempt(PASSWORD) == 429
    assert "each process alone" in caplog.text


@pytest.mark.redis
@pytest.mark.django_db(transaction=True)
def test_many_guesses_at_once_are_no_more_than_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    User.objects.create_user("ada", password=PASSWORD)
    looked: list[str] = []
    check = User.check_password

    def counted(self: User, text: str) -> bool:
        looked.append(text)
        return check(self, text)

    monkeypatch.setattr(User, "check_password", counted)
    with shared(need("redis")):
        statuses = flows.at_once(24, lambda _: attempt())

    assert len(looked) <= throttle.WRONG
    assert set(statuses) <= {422, 429}


def test_what_lies_in_redis_is_a_number_or_nothing() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        throttle.Numbers().loads(b"cos\nsystem\n(S'true'\ntR.")
