"""What a cookie alone may do: read. Every write takes the token of a page of this site too."""

from __future__ import annotations

import hashlib
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from django.apps import apps
from django.conf import settings
from django.middleware.csrf import _get_new_csrf_string
from django.test import Client

from gates.models import ApiKey
from tests.site.pages.looking import ENDLESS, Looker
from tests.site.walk import World, addresses, world_of_ada

pytestmark = pytest.mark.django_db

WRITES: Final = ("post", "put", "patch", "delete")
NOWHERE: Final = frozenset({"api/v1/", "api/v1/{rest}"})
ELSEWHERE: Final = ("https://evil.example.com", "null", "http://testserver.evil.example.com")


@pytest.fixture
def world() -> World:
    return world_of_ada()


def database() -> dict[str, str]:
    """Each table as one digest. When somebody was last seen is not what a page is about."""
    found = {}
    for model in apps.get_models(include_auto_created=True):
        rows = model._default_manager.order_by("pk").values()
        if model is ApiKey:
            fields = [f.attname for f in ApiKey._meta.concrete_fields if f.name != "last_used_at"]
            rows = rows.values(*fields)
        digest = hashlib.sha256()
        for row in rows.iterator():
            digest.update(repr(sorted(row.items())).encode("utf-8", "replace"))
        found[model._meta.label] = digest.hexdigest()
    return found


@pytest.mark.parametrize("role", ["visitor", "ada", "root"])
def test_no_write_without_its_token_gets_past_the_door(world: World, role: str) -> None:
    looker = Looker.called(role, csrf=True)
    before = database()

    for method in WRITES:
        for route, _, response in looker.everything(world, method):
            # The API asks first which methods an address takes, and who calls.
            denied = (401, 403, 405) if route.startswith("api/") else (403,)
            at_the_door = response.headers.get("Location", "").startswith("/sign-in/")
            if route not in NOWHERE and not (role == "visitor" and at_the_door):
                assert response.status_code in denied, (method, route)

    assert database() == before


@pytest.mark.parametrize("origin", ELSEWHERE)
def test_the_token_helps_no_page_of_another_site(world: World, origin: str) -> None:
    looker = Looker.called("root", csrf=True)
    token = _get_new_csrf_string()
    looker.client.cookies[settings.CSRF_COOKIE_NAME] = token
    headers = {"Origin": origin, "X-CSRFToken": token}
    before = database()

    for route, path in addresses(world):
        response = looker.ask("post", path, route, headers=headers)
        denied = (403, 405) if route.startswith("api/") else (403,)
        if route not in NOWHERE:
            assert response.status_code in denied, route

    assert database() == before


def test_over_https_a_referer_of_elsewhere_is_refused_too(world: World) -> None:
    looker = Looker.called("root", csrf=True)
    token = _get_new_csrf_string()
    looker.client.cookies[settings.CSRF_COOKIE_NAME] = token
    for referer in ("https://evil.example.com/", "http://testserver/", ""):
        response = looker.ask(
            "post", "/settings/quiet-hours/", secure=True,
            headers={"Referer": referer, "X-CSRFToken": token},
        )  # fmt: skip
        assert response.status_code == 403, referer


@pytest.mark.parametrize("role", ["visitor", "ada", "looker", "operator", "root", "key of ada"])
def test_reading_changes_nothing(world: World, role: str) -> None:
    looker = Looker.called(role)
    before = database()

    for method in ("get", "head", "options"):
        for route, path in addresses(world):
            if route in ENDLESS or "sign-out" in route or route == "admin/logout/":
                continue
            response: Any = looker.ask(method, path, route)
            response.getvalue()
    after = database()

    assert [name for name, digest in after.items() if digest != before[name]] == []


def test_a_link_to_sign_in_is_not_used_up_by_looking(client: Client) -> None:
    from obversa_site.accounts import sign_in_link
    from tests import factories

    link = sign_in_link(factories.user("eve"))
    before = database()

    for method in ("get", "head", "options"):
        getattr(client, method)(link)

    assert database() == before
    used = {"code": urlsplit(link).fragment, "confirmed": "yes"}
    assert client.post("/sign-in/link/", used).status_code == 302
