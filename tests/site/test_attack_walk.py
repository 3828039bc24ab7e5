"""Every address of the site, tried by those who have no business there.

A new route is denied by default, or one of these tests fails: it answers somebody it should not, or
its address needs a value that nobody has given here.
"""

from __future__ import annotations

from typing import Final

import pytest
from django.test import Client
from django.utils.http import urlencode

from gates import keys
from tests import factories
from tests.site.walk import MARK, World, addresses, ask, world_of_ada

pytestmark = pytest.mark.django_db

OPEN: Final = {"sign-in/", "sign-in/link/", "admin/login/", "healthz", "readyz"}
# What anybody who is signed in has: lists that hold what is theirs, and their own settings.
EVERYBODYS: Final = OPEN | {
    "",
    "runs/",
    "workflows/",
    "teams/",
    "bulk/",
    "bulk/answer/",
    "grants/",
    "api/v1/grants",
    "settings/",
    "settings/keys/",
    "settings/deputy/",
    "settings/quiet-hours/",
    "notifications/",
    "api/v1/docs",
    "api/v1/openapi.json",
    "api/v1/receipt-key",
    "api/v1/requests",
    "api/v1/runs",
    "api/v1/workflows",
}
METHODS: Final = ("get", "head", "post", "put", "patch", "delete", "options")


@pytest.fixture
def world() -> World:
    return world_of_ada()


def is_denied(status: int, location: str) -> bool:
    # The admin sends whoever signs out of it to its own first page, which sends on to the door.
    at_the_door = location.startswith(("/sign-in/", "/admin/login/")) or location == "/admin/"
    return status in (401, 403, 404, 405) or (status == 302 and at_the_door)


def test_the_walk_knows_every_route(world: World) -> None:
    found = addresses(world)

    assert len(found) > 90
    assert {route for route, _ in found} >= EVERYBODYS
    assert f"/runs/{world.gate.run_id}/cancel/" in [path for _, path in found]
    assert f"/api/v1/requests/{world.gate.pk}/submit" in [path for _, path in found]


@pytest.mark.parametrize("method", METHODS)
def test_nobody_gets_past_the_door(world: World, method: str) -> None:
    before, client = world.facts(), Client()
    answered = set()
    for route, path in addresses(world):
        status, location, body = ask(client, method, path, route)
        assert MARK not in body, path
        assert status < 500 or route == "readyz", path
        if not is_denied(status, location):
            answered.add(route)

    assert answered <= OPEN
    assert world.facts() == before


@pytest.mark.parametrize("method", METHODS)
def test_somebody_without_any_right_sees_only_what_is_everybodys(world: World, method: str) -> None:
    client = Client()
    client.force_login(factories.user("cyd"))
    before = world.facts()
    answered = set()
    for route, path in addresses(world):
        if route == "sign-out/":
            continue
        status, location, body = ask(client, method, path, route)
        # A refusal may name what its caller named.
        named = f"start-{MARK}" if method == "post" else ""
        assert MARK not in body.replace(named, ""), path
        assert status < 500 or route == "readyz", path
        if not is_denied(status, location):
            answered.add(route)

    assert answered <= EVERYBODYS
    assert world.facts() == before


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("owner", ["nobody", "cyd"])
def test_a_key_that_reads_opens_no_page_and_writes_nothing(
    world: World, method: str, owner: str
) -> None:
    user = None if owner == "nobody" else factories.user(owner)
    headers = {"Authorization": f"Bearer {keys.create_key('reader', ['read'], user)[1]}"}
    before, client = world.facts(), Client()
    answered = set()
    for route, path in addresses(world):
        if route.endswith("/stream") and user is None:
            continue  # it would answer until the run ends
        status, location, body = ask(client, method, path, route, headers=headers)
        assert user is None or MARK not in body, path
        assert status < 500 or route == "readyz", path
        if not is_denied(status, location):
            answered.add(route)

    pages = {route for route in answered if not route.startswith("api/v1/")}
    # A key of nobody in particular sees everything, so the counts of everything too.
    assert pages <= OPEN | ({"metrics"} if user is None else set())
    if method != "get":
        assert answered == pages
    assert world.facts() == before


def test_the_addresses_of_the_walk_do_lead_to_what_is_adas(world: World) -> None:
    client = Client()
    client.force_login(factories.user("ada"))
    shown = [
        path
        for route, path in addresses(world)
        if "{" in route and not route.endswith("/stream") and route not in OPEN
        if MARK in ask(client, "get", path)[2]
    ]

    for part in ("/gates/", "/runs/", "/teams/", "/workflows/", "/api/v1/requests/", "/artifacts/"):
        assert any(part in path for path in shown), part


def test_no_search_of_the_admin_leads_around_it() -> None:
    staff = factories.user("staff", is_staff=True)
    client = Client()
    client.force_login(staff)
    factories.pending_gate()
    query = {"app_label": "gates", "model_name": "response", "field_name": "request", "term": ""}

    assert client.get("/admin/autocomplete/?" + urlencode(query)).status_code == 403
    assert client.get("/admin/gates/request/?" + urlencode({"q": "release"})).status_code == 403
    assert "release" not in client.get("/admin/").content.decode().lower()
