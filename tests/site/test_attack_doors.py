"""Coming in by the wrong door: passwords, links, sessions, sockets, headers, the log."""

from __future__ import annotations

import logging
import logging.config
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client, override_settings
from django.urls import reverse

from obversa_site import accounts, throttle
from obversa_site.logs import logging_config
from obversa_site.origins import is_same
from tests import factories

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery staple"
FORGED = "/a\n2026 \x1b[31m\u202eforged"


@pytest.fixture(autouse=True)
def nothing_counted() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password=PASSWORD)


def attempt(client: Client, name: str = "ada", password: str = "guess", **extra: Any) -> Any:
    given = {"username": name, "password": password}
    return client.post(reverse("sign-in"), given, **extra)


# --- passwords ------------------------------------------------------------------------------------


def test_a_name_takes_ten_wrong_passwords_and_then_waits(client: Client, ada: User) -> None:
    statuses = [attempt(client).status_code for _ in range(throttle.WRONG)]
    late = attempt(client, password=PASSWORD)

    assert statuses == [422] * (throttle.WRONG - 1) + [429]
    assert late.status_code == 429
    assert "Wait ten minutes" in late.content.decode()
    assert "_auth_user_id" not in client.session


def test_the_admin_has_no_door_of_its_own(client: Client) -> None:
    User.objects.create_superuser("root", password=PASSWORD)
    for _ in range(throttle.WRONG):
        attempt(client, "root")

    client.post("/admin/login/", {"username": "root", "password": PASSWORD})

    assert "_auth_user_id" not in client.session


def test_another_name_another_address_and_a_link_still_get_in(client: Client, ada: User) -> None:
    User.objects.create_user("ben", password=PASSWORD)
    link = {"code": accounts.sign_in_code(ada), "confirmed": "yes"}
    for _ in range(throttle.WRONG):
        attempt(client)

    assert attempt(Client(), "ben", PASSWORD).status_code == 302
    assert Client().post("/sign-in/link/", link).status_code == 302
    assert attempt(Client(), "ada", PASSWORD, REMOTE_ADDR="192.0.2.7").status_code == 302


def test_a_right_password_forgets_the_wrong_ones(client: Client, ada: User) -> None:
    for _ in range(3):
        for _ in range(throttle.WRONG - 1):
            attempt(Client())
        assert attempt(Client(), "ada", PASSWORD).status_code == 302


# --- links and sessions ---------------------------------------------------------------------------


def test_a_link_dies_with_a_change_of_the_password(client: Client, ada: User) -> None:
    link = {"code": accounts.sign_in_code(ada), "confirmed": "yes"}
    ada.set_password("another good long one")
    ada.save()

    assert client.post("/sign-in/link/", link).status_code == 410


@override_settings(OBVERSA_BASE_URL="https://obversa.example.com")
def test_a_link_leads_to_this_site_whatever_the_request_called_it(ada: User) -> None:
    assert accounts.sign_in_link(ada).startswith("https://obversa.example.com/sign-in/link/#")


def test_a_session_from_before_signing_in_is_not_the_one_after(client: Client, ada: User) -> None:
    client.get(reverse("sign-in"))
    session = client.session
    session["planted"] = "yes"
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key or ""
    planted = session.session_key

    attempt(client, password=PASSWORD)

    assert client.session.session_key != planted
    assert Client(HTTP_COOKIE=f"sessionid={planted}").get("/").status_code == 302


def test_the_cookies_say_how_they_may_travel(client: Client, ada: User) -> None:
    client.get(reverse("sign-in"))
    attempt(client, password=PASSWORD)

    session, token = client.cookies["sessionid"], client.cookies["csrftoken"]
    assert session["httponly"]
    assert (session["samesite"], token["samesite"]) == ("Lax", "Lax")


@pytest.mark.parametrize("host", ["evil.example.com", "localhost@evil.example.com", "a b"])
def test_another_host_is_refused(client: Client, host: str) -> None:
    assert client.get("/sign-in/", headers={"Host": host}).status_code == 400
    assert client.get("/api/v1/runs", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example.com",
        "http:evil.example.com",
        "///evil.example.com",
        "/\\evil.example.com",
        "\x08//evil.example.com",
        "javascript:alert(1)",
        "data:text/html,x",
        "//testserver@evil.example.com/",
    ],
)
def test_whoever_is_signed_in_is_not_sent_elsewhere(client: Client, ada: User, wanted: str) -> None:
    client.force_login(ada)

    for name in ("get", "post"):
        response = getattr(client, name)(reverse("sign-in"), {"next": wanted})
        assert response.headers.get("Location", "/") == "/"


# --- what every answer carries --------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/sign-in/", "/runs/", "/nothing/here/", "/admin/", "/api/v1/runs", "/api/v1/x"]
)
def test_every_answer_is_kept_out_of_frames_and_caches(client: Client, path: str) -> None:
    for user in (None, factories.user("root", is_superuser=True, is_staff=True)):
        if user is not None:
            client.force_login(user)
        headers = client.get(path).headers
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "no-store" in headers["Cache-Control"]


def test_a_file_of_the_site_may_be_kept(client: Client) -> None:
    assert "no-store" not in client.get("/static/js/early.js").headers["Cache-Control"]


# --- sockets and the log --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://localhost:8000", "localhost:8000", True),
        ("https://obversa.example.com", "obversa.example.com", True),
        ("https://obversa.example.com", "obversa.example.com:443", True),
        ("http://localhost:3000", "localhost:8000", False),
        ("http://localhost", "localhost:8000", False),
        ("http://evil.example.com", "localhost:8000", False),
        ("http://localhost:8000.evil.example.com", "localhost:8000", False),
        ("null", "localhost:8000", False),
        ("", "", False),
        ("", "localhost:8000", False),
        ("file://localhost:8000", "localhost:8000", False),
    ],
)
def test_a_socket_is_opened_by_a_page_of_this_very_site(origin: str, host: str, same: bool) -> None:
    assert is_same(origin, host) is same


def test_an_address_cannot_write_a_line_of_its_own_into_the_log() -> None:
    config = logging_config("text")
    formatter = logging.config.DictConfigurator(config).configure_formatter(
        config["formatters"]["line"]
    )
    record = logging.LogRecord(
        "obversa_site", logging.ERROR, __file__, 1, "path=%s", (FORGED,), None
    )

    written = formatter.format(record)

    assert len(written.splitlines()) == 1
    assert "\x1b" not in written
    assert "path=/a\\n2026 \\x1b[31m\\u202eforged" in written
