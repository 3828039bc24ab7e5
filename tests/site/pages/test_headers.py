"""What every answer of every address carries, whoever asks."""

from __future__ import annotations

from typing import Any, Final

import pytest
from django.conf import settings
from django.test import override_settings

from tests import factories
from tests.site.pages.looking import ENDLESS, ROLES, Looker, Page, policy_of
from tests.site.walk import World, addresses, world_of_ada

pytestmark = pytest.mark.django_db

# Whoever stores what these say, knows nothing about anybody.
PUBLIC: Final = frozenset({"healthz", "readyz"})
# A file shown in a frame of its page: it may be framed here, and may do nothing.
FRAMED: Final = "gates/{gates}/evidence/{evidence}/"
HTTPS: Final = {
    "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https"),
    "SECURE_SSL_REDIRECT": True,
    "SECURE_REDIRECT_EXEMPT": [r"^(healthz|readyz|metrics)$"],
    "SECURE_HSTS_SECONDS": 31536000,
    "SESSION_COOKIE_SECURE": True,
    "CSRF_COOKIE_SECURE": True,
}


@pytest.fixture
def world() -> World:
    return world_of_ada()


def faults_of(route: str, response: Any) -> list[str]:
    """What is wrong with the headers of this answer."""
    headers, policy = response.headers, policy_of(response)
    wanted = {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    found = [
        f"{name}: {headers.get(name)}"
        for name, value in wanted.items()
        if headers.get(name) != value
    ]
    if policy.get("default-src") != "'none'":
        found.append(f"default-src {policy.get('default-src')}")
    text = headers.get("Content-Security-Policy", "")
    found += [word for word in ("unsafe", "*", "http:", "https:", "blob:") if word in text]
    if route == FRAMED and response.status_code == 200:
        found += [] if "sandbox" in policy else ["a frame without a sandbox"]
    elif "sandbox" not in policy:
        if policy.get("frame-ancestors") != "'none'":
            found.append(f"frame-ancestors {policy.get('frame-ancestors')}")
        found += [
            f"{name} {policy.get(name)}"
            for name, value in {"base-uri": "'none'", "form-action": "'self'"}.items()
            if policy.get(name) != value
        ]
    if route != FRAMED and headers.get("X-Frame-Options") != "DENY":
        found.append(f"X-Frame-Options {headers.get('X-Frame-Options')}")
    if "camera=()" not in headers.get("Permissions-Policy", ""):
        found.append("Permissions-Policy")
    if route not in PUBLIC and "no-store" not in headers.get("Cache-Control", ""):
        found.append(f"Cache-Control {headers.get('Cache-Control')}")
    found += [
        name
        for name in ("Server", "X-Powered-By", "Access-Control-Allow-Origin")
        if name in headers
    ]
    return found


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("role", ROLES)
def test_every_answer_says_what_it_may_do_and_who_may_keep_it(
    world: World, role: str, method: str
) -> None:
    looker = Looker.called(role)

    found = {
        f"{route} {response.status_code}": faults
        for route, _, response in looker.everything(world, method)
        if (faults := faults_of(route, response))
    }

    assert found == {}


@pytest.mark.parametrize("role", ["visitor", "ada", "operator", "root"])
def test_no_page_holds_what_runs_or_loads_or_sends_by_itself(world: World, role: str) -> None:
    looker, pages, found = Looker.called(role), 0, {}
    for route, _, response in looker.everything(world):
        body = response.getvalue().decode(errors="replace")
        if not response.headers.get("Content-Type", "").startswith("text/html"):
            continue
        pages += 1
        if faults := Page(body).faults:
            found[route] = faults

    assert found == {}
    assert pages > (5 if role == "visitor" else 20)


def test_an_answer_over_https_says_to_come_by_https_alone(world: World) -> None:
    with override_settings(**HTTPS):
        looker = Looker.called("root")
        for route, path in _paths(world):
            response = looker.ask("get", path, route, headers={"X-Forwarded-Proto": "https"})
            assert "max-age=31536000" in response.headers["Strict-Transport-Security"], route
            plain = looker.ask("get", path, route)
            is_exempt = path in ("/healthz", "/readyz", "/metrics")
            assert (plain.status_code == 301) is not is_exempt, route
            if not is_exempt:
                assert plain.headers["Location"].startswith("https://"), route


def _paths(world: World) -> list[tuple[str, str]]:
    return [(route, path) for route, path in addresses(world) if route not in ENDLESS]


@override_settings(**HTTPS)
def test_every_cookie_is_for_this_site_over_https_alone(world: World) -> None:
    looker = Looker.called("visitor")
    seen: dict[str, Any] = {}
    secure = {"X-Forwarded-Proto": "https", "Referer": "https://testserver/sign-in/"}
    for route, path in _paths(world):
        for method in ("get", "post"):
            seen |= looker.ask(method, path, route, headers=secure).cookies.items()
    person = factories.user("eve")
    person.set_password("a good long password")
    person.save()
    told = looker.ask(
        "post", "/sign-in/", headers=secure,
        data={"username": "eve", "password": "a good long password"},
    )  # fmt: skip
    seen |= told.cookies.items()

    assert set(seen) == {settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME}
    for cookie in seen.values():
        assert cookie["secure"]
        assert cookie["samesite"] == "Lax"
        assert cookie["domain"] == ""
        assert cookie["path"] == "/"
    assert seen[settings.SESSION_COOKIE_NAME]["httponly"]
