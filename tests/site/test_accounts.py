from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from obversa_site import accounts

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery staple"


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password=PASSWORD)


def link_path(user: User) -> str:
    return urlsplit(accounts.sign_in_link(user)).path


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
    path = link_path(ada)

    first = client.post(path)
    second = Client().post(path)

    assert first.status_code == 302
    assert client.session["_auth_user_id"] == str(ada.pk)
    assert second.status_code == 410


def test_a_link_made_and_used_within_one_second_still_works_once_only(
    client: Client, ada: User
) -> None:
    ada.last_login = timezone.now()
    ada.save(update_fields=["last_login"])
    path = link_path(ada)

    assert client.post(path).status_code == 302
    assert Client().post(path).status_code == 410


def test_opening_a_link_shows_whom_it_is_for_and_uses_nothing_up(client: Client, ada: User) -> None:
    path = link_path(ada)

    for _ in range(3):
        page = client.get(path)
        assert page.status_code == 200
        assert page.context["person_label"] == "ada"
        assert page.context["action_url"] == path
    client.head(path)

    ada.refresh_from_db()
    assert ada.last_login is None
    assert not signed_in(client)
    assert client.post(path).status_code == 302


def test_a_link_dies_with_another_sign_in(client: Client, ada: User) -> None:
    path = link_path(ada)
    Client().post(reverse("sign-in"), {"username": "ada", "password": PASSWORD})

    assert client.get(path).status_code == 410
    assert client.post(path).status_code == 410
    assert not signed_in(client)


def test_a_link_dies_after_an_hour(
    client: Client, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = link_path(ada)
    made = accounts.link_tokens._now()
    later = made + timedelta(minutes=59)
    monkeypatch.setattr(accounts.link_tokens, "_now", lambda: later)
    assert client.get(path).status_code == 200

    much_later = made + timedelta(minutes=61)
    monkeypatch.setattr(accounts.link_tokens, "_now", lambda: much_later)

    assert client.post(path).status_code == 410
    assert not signed_in(client)


def test_a_link_of_a_person_who_left_signs_nobody_in(client: Client, ada: User) -> None:
    path = link_path(ada)
    ada.is_active = False
    ada.save(update_fields=["is_active"])

    assert client.post(path).status_code == 410


@pytest.mark.parametrize("person", ["MQ", "x", "AAAA", "LTE"])
def test_a_made_up_link_signs_nobody_in(client: Client, ada: User, person: str) -> None:
    path = reverse("sign-in-link", args=[person, "abc-0123456789"])

    assert client.get(path).status_code == 410
    assert client.post(path).status_code == 410


def test_a_token_of_one_person_does_not_work_for_another(client: Client, ada: User) -> None:
    ben = User.objects.create_user("ben", password=PASSWORD)
    token = link_path(ben).rstrip("/").rpartition("/")[2]
    adas = link_path(ada).rstrip("/").rpartition("/")[0]

    assert client.post(f"{adas}/{token}/").status_code == 410


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
    assert strict.post(link_path(ada)).status_code == 403
