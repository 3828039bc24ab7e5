from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.middleware.csrf import _get_new_csrf_string
from django.test import Client
from django.utils import timezone

from gates.keys import create_key, revoke
from gates.models import Request
from tests import factories

pytestmark = pytest.mark.django_db

SCOPES = ("read", "start", "claim", "answer", "operate")


@dataclass
class Caller:
    """A client that may be signed in, may carry a key, and may know the CSRF token."""

    client: Client
    headers: dict[str, str]

    def get(self, path: str) -> Any:
        return self.client.get(path, headers=self.headers)

    def post(self, path: str, body: Any = None) -> Any:
        return self.client.post(
            path, body or {}, content_type="application/json", headers=self.headers
        )


def caller(*, session: bool = False, bearer: str = "", csrf: bool = False) -> Caller:
    client = Client(enforce_csrf_checks=True)
    headers = {}
    if session:
        client.force_login(factories.user("ada"))
    if bearer:
        headers["Authorization"] = f"Bearer {bearer}"
    if csrf:
        token = _get_new_csrf_string()
        client.cookies[settings.CSRF_COOKIE_NAME] = token
        headers["X-CSRFToken"] = token
    return Caller(client, headers)


@pytest.fixture
def gate() -> Request:
    """A question for ada, and for her key."""
    audience = {"users": ["ada"], "keys": ["bot"]}
    return factories.external_request(audience=audience, by=factories.key("asker"))


@pytest.fixture
def key() -> str:
    return create_key("bot", SCOPES)[1]


@pytest.mark.parametrize("csrf", [False, True])
@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("bearer", [False, True])
def test_reading_takes_a_session_or_a_key_and_never_a_csrf_token(
    gate: Request, key: str, session: bool, bearer: bool, csrf: bool
) -> None:
    who = caller(session=session, bearer=key if bearer else "", csrf=csrf)

    response = who.get(f"/api/v1/requests/{gate.pk}")

    assert response.status_code == (200 if session or bearer else 401)


@pytest.mark.parametrize("csrf", [False, True])
@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("bearer", [False, True])
def test_only_a_session_needs_a_csrf_token_to_write(
    gate: Request, key: str, session: bool, bearer: bool, csrf: bool
) -> None:
    who = caller(session=session, bearer=key if bearer else "", csrf=csrf)

    response = who.post(f"/api/v1/requests/{gate.pk}/claim")

    if bearer:
        expected, holder = 200, "key:bot"
    elif session:
        ada = User.objects.get(username="ada")
        expected, holder = (200, f"user:{ada.pk}") if csrf else (403, "")
    else:
        expected, holder = 401, ""
    gate.refresh_from_db()
    assert (response.status_code, gate.holder) == (expected, holder)
    if expected == 403:
        assert response.json()["error"]["code"] == "csrf"
    if expected == 401:
        assert response.json()["error"]["code"] == "unauthenticated"
        assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "given", ["Bearer nonsense", "Bearer", "Basic YWRhOmFkYQ==", "", "Bearer obv_é", "bearer  "]
)
def test_a_wrong_header_is_refused_even_beside_a_good_session(gate: Request, given: str) -> None:
    who = caller(session=True, csrf=True)
    who.headers["Authorization"] = given

    assert who.get(f"/api/v1/requests/{gate.pk}").status_code == 401
    assert who.post(f"/api/v1/requests/{gate.pk}/claim").status_code == 401
    gate.refresh_from_db()
    assert gate.holder == ""


def test_a_revoked_key_and_an_expired_one_open_nothing(gate: Request) -> None:
    revoked, text = create_key("revoked", ["read"])
    revoke(revoked)
    expired, late = create_key("expired", ["read"])
    expired.expires_at = timezone.now() - timedelta(seconds=1)
    expired.save(update_fields=["expires_at"])

    for bearer in (text, late):
        assert caller(bearer=bearer).get(f"/api/v1/requests/{gate.pk}").status_code == 401


def test_the_key_of_a_person_who_left_opens_nothing(gate: Request) -> None:
    ada = factories.user("ada")
    _, text = create_key("adas", ["read"], ada)
    assert caller(bearer=text).get(f"/api/v1/requests/{gate.pk}").status_code == 200

    ada.is_active = False
    ada.save(update_fields=["is_active"])

    assert caller(bearer=text).get(f"/api/v1/requests/{gate.pk}").status_code == 401


@pytest.mark.parametrize(
    ("scope", "method", "path", "body"),
    [
        ("read", "get", "/requests", None),
        ("read", "get", "/requests/{gate}", None),
        ("read", "get", "/requests/{gate}/history", None),
        ("claim", "post", "/requests/{gate}/claim", {}),
        ("claim", "post", "/requests/{gate}/release", {}),
        ("answer", "post", "/requests/{gate}/submit", {"digest": "0" * 64, "response": {}}),
        ("operate", "post", "/requests/{gate}/force-release", {"reason": "r"}),
        ("operate", "post", "/requests/{gate}/withdraw", {"reason": "r"}),
        ("read", "get", "/workflows", None),
        ("read", "get", "/runs", None),
        ("read", "get", "/runs/{run}", None),
        ("read", "get", "/runs/{run}/events", None),
        ("read", "get", "/runs/{run}/stream", None),
        ("read", "get", "/runs/{run}/artifacts/sha256:0", None),
        ("start", "post", "/runs", {"workflow": "release"}),
        ("operate", "post", "/runs/{run}/cancel", {}),
        ("operate", "post", "/runs/{run}/resume", {}),
    ],
)
def test_a_key_does_only_what_its_scopes_say(
    gate: Request, scope: str, method: str, path: str, body: Any
) -> None:
    others = [name for name in SCOPES if name != scope]
    who = caller(bearer=create_key("narrow", others)[1])
    address = "/api/v1" + path.format(gate=gate.pk, run=gate.run_id)

    response = who.get(address) if method == "get" else who.post(address, body)

    assert response.status_code == 403
    assert response.json()["error"]["code"] == "scope"
    assert f"'{scope}'" in response.json()["error"]["message"]
    gate.refresh_from_db()
    assert gate.status == "pending"


def test_every_address_of_the_api_is_closed_to_nobody(gate: Request) -> None:
    schema = caller(session=True).get("/api/v1/openapi.json").json()
    nobody = caller()
    paths = [path for path, operations in schema["paths"].items() if "get" in operations]

    for path in [*paths, "/api/v1/openapi.json"]:
        address = path.replace("{id}", str(gate.pk)).replace("{digest}", "sha256:0")
        assert nobody.get(address).status_code == 401, address
    assert nobody.get("/api/v1/docs").status_code == 302


def test_a_key_for_a_person_may_not_more_than_the_person() -> None:
    hidden = factories.external_request(audience={"users": ["ben"]}, by=factories.key("asker"))
    _, text = create_key("cyds", SCOPES, factories.user("cyd"))

    who = caller(bearer=text)

    assert who.get(f"/api/v1/requests/{hidden.pk}").status_code == 404
    assert who.post(f"/api/v1/requests/{hidden.pk}/claim").status_code == 404
