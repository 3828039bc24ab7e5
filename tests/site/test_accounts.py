from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from obversa_site import accounts, throttle

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery staple"


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password=PASSWORD)


LINK = "/sign-in/link/"


def code_of(user: User) -> str:
    return urlsplit(accounts.sign_in_link(user)).fragment


def use(client: Client, code: str) -> Any:
    """Press the button on the page that says whom the link is for."""
    return client.post(LINK, {"code": code, "confirmed": "yes"})


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_person_signs_in_by_password_and_goes_where_they_were_going(
    client: Client, ada: User
) -> None:
    response = client.post(
        reverse("sign-in"), {"username": "ada", "password": PASSWORD, "next": "/runs/?status=x"}
    )

    assert response.status_code == 302
    assert response.headers["Location"] == "/runs/?status=x"
    assert signed_in(client)


def test_a_wrong_password_is_refused_and_names_no_reason(client: Client, ada: User) -> None:
    wrong = client.post(reverse("sign-in"), {"username": "ada", "password": "guess"})
    unknown = client.post(reverse("sign-in"), {"username": "nobody", "password": "guess"})

    assert wrong.status_code == unknown.status_code == 422
    assert wrong.context["form"].errors == unknown.context["form"].errors
    assert not signed_in(client)


@pytest.mark.parametrize(
    "foreign",
    ["https://evil.example.com/", "//evil.example.com", "javascript:alert(1)", "\\\\e"],
)
def test_a_foreign_next_is_refused(client: Client, ada: User, foreign: str) -> None:
    response = client.post(
        reverse("sign-in"), {"username": "ada", "password": PASSWORD, "next": foreign}
    )

    assert response.headers["Location"] == "/"


def test_the_sign_in_page_carries_a_safe_next_and_drops_a_foreign_one(client: Client) -> None:
    kept = client.get(reverse("sign-in"), {"next": "/runs/"})
    dropped = client.get(reverse("sign-in"), {"next": "https://evil.example.com/"})

    assert kept.context["next"] == "/runs/"
    assert dropped.context["next"] == "/"
    assert "no-store" in kept.headers["Cache-Control"]


def test_a_link_signs_its_person_in_once_only(client: Client, ada: User) -> None:
    code = code_of(ada)

    first = use(client, code)
    second = use(Client(), code)

    assert first.status_code == 302
    assert client.session["_auth_user_id"] == str(ada.pk)
    assert second.status_code == 410


def test_a_link_made_and_used_within_one_second_still_works_once_only(
    client: Client, ada: User
) -> None:
    ada.last_login = timezone.now()
    ada.save(update_fields=["last_login"])
    code = code_of(ada)

    assert use(client, code).status_code == 302
    assert use(Client(), code).status_code == 410


def test_opening_a_link_shows_whom_it_is_for_and_uses_nothing_up(client: Client, ada: User) -> None:
    code = code_of(ada)

    for _ in range(3):
        assert client.get(LINK).status_code == 200
        page = client.post(LINK, {"code": code})
        assert page.status_code == 200
        assert page.context["person_label"] == "ada"
    client.head(LINK)

    ada.refresh_from_db()
    assert ada.last_login is None
    assert not signed_in(client)
    assert use(client, code).status_code == 302


def test_a_link_dies_with_another_sign_in(client: Client, ada: User) -> None:
    code = code_of(ada)
    Client().post(reverse("sign-in"), {"username": "ada", "password": PASSWORD})

    assert client.post(LINK, {"code": code}).status_code == 410
    assert use(client, code).status_code == 410
    assert not signed_in(client)


def test_a_link_dies_after_an_hour(
    client: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = code_of(ada)
    made = accounts.link_tokens._now()
    later = made + timedelta(minutes=59)
    monkeypatch.setattr(accounts.link_tokens, "_now", lambda: later)
    assert client.post(LINK, {"code": code}).status_code == 200

    much_later = made + timedelta(minutes=61)
    monkeypatch.setattr(accounts.link_tokens, "_now", lambda: much_later)

    assert use(client, code).status_code == 410
    assert not signed_in(client)


def test_a_link_of_a_person_who_left_signs_nobody_in(client: Client, ada: User) -> None:
    code = code_of(ada)
    ada.is_active = False
    ada.save(update_fields=["is_active"])

    assert use(client, code).status_code == 410


def test_the_code_of_a_link_is_in_no_address_that_a_server_sees(client: Client, ada: User) -> None:
    parts = urlsplit(accounts.sign_in_link(ada))
    shown = client.post(LINK, {"code": parts.fragment})
    used = use(client, parts.fragment)

    assert (parts.path, parts.query) == (LINK, "")
    for answer in (shown, used):
        assert "no-store" in answer.headers["Cache-Control"]
        assert parts.fragment not in str(answer.headers)


@pytest.mark.parametrize("around", ["{link}", " {link}\n", "#{code}", " {code} "])
def test_without_scripts_the_link_or_its_code_is_pasted(
    client: Client, ada: User, around: str
) -> None:
    link = accounts.sign_in_link(ada)
    code = urlsplit(link).fragment

    page = client.post(LINK, {"code": around.format(link=link, code=code)})
    assert page.context["code"] == code
    assert use(client, page.context["code"]).status_code == 302


def test_wrong_codes_have_an_end_and_right_ones_are_none_of_them(
    client: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "WRONG_CODES", 3)
    cache.clear()
    wrong = [client.post(LINK, {"code": f"MQ.{number}"}).status_code for number in range(4)]
    late = use(client, code_of(ada))
    elsewhere = client.post(
        LINK, {"code": code_of(ada), "confirmed": "yes"}, REMOTE_ADDR="192.0.2.7"
    )
    cache.clear()

    assert wrong == [410, 410, 410, 429]
    assert late.status_code == 429
    assert elsewhere.status_code == 302


@pytest.mark.parametrize("person", ["MQ", "x", "AAAA", "LTE", "", "é", "AAAAAAAAAAAAAAAAAAAAAAA"])
def test_a_made_up_link_signs_nobody_in(client: Client, ada: User, person: str) -> None:
    code = f"{person}.abc-0123456789"

    assert client.post(LINK, {"code": code}).status_code == 410
    assert use(client, code).status_code == 410


def test_a_token_of_one_person_does_not_work_for_another(client: Client, ada: User) -> None:
    ben = User.objects.create_user("ben", password=PASSWORD)
    token = code_of(ben).partition(".")[2]

    assert use(client, f"{code_of(ada).partition('.')[0]}.{token}").status_code == 410


def test_signing_out_takes_a_post(client: Client, ada: User) -> None:
    client.force_login(ada)

    assert client.get(reverse("sign-out")).status_code == 405
    assert signed_in(client)
    assert client.post(reverse("sign-out")).headers["Location"] == reverse("sign-in")
    assert not signed_in(client)


def test_signing_in_takes_a_csrf_token(ada: User) -> None:
    strict = Client(enforce_csrf_checks=True)

    response = strict.post(reverse("sign-in"), {"username": "ada", "password": PASSWORD})

    assert response.status_code == 403
    assert not signed_in(strict)
    assert use(strict, code_of(ada)).status_code == 403
