"""What is not yours is told from what is not there by nothing (interactions.md A10)."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.urls import get_resolver

from tests import factories
from tests.site.walk import BODIES, World, routes, world_of_ada

pytestmark = pytest.mark.django_db
# Names whose value in an address is the key of something that belongs to somebody.
KEYS = ("gates", "requests", "runs", "grants")


@pytest.fixture
def world() -> World:
    return world_of_ada()


def told(client: Client, method: str, path: str, route: str) -> tuple[int, bytes, dict[str, str]]:
    extra: dict[str, Any] = {}
    if route.startswith("api/") and method == "post":
        extra = {"data": BODIES.get(route, {}), "content_type": "application/json"}
    response = getattr(client, method)(path, **extra)
    body = b"".join(response.streaming_content) if response.streaming else response.content
    return response.status_code, body, dict(response.headers)


def both(world: World) -> list[tuple[str, str, str]]:
    """Each address that names somebody's own, with the same one for what nobody has."""
    found = []
    for route, names in dict(routes(get_resolver())).items():
        own = [name for name in names if name in KEYS]
        if not own or route.startswith("admin/"):
            continue
        values = {name: world.values[name] for name in names}
        made_up = values | {name: _like(values[name]) for name in own}
        found.append((route, "/" + route.format(**values), "/" + route.format(**made_up)))
    return found


def _like(key: object) -> object:
    return uuid4() if isinstance(key, UUID) else key


@pytest.mark.parametrize("signed_in", [True, False])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_strangers_key_and_one_of_nothing_are_answered_alike(
    world: World, method: str, *, signed_in: bool
) -> None:
    client = Client()
    if signed_in:
        assert factories.cyd().user is not None
        client.force_login(factories.user("cyd"))
    before, compared = world.facts(), 0

    for route, theirs, nobodys in both(world):
        status, body, headers = told(client, method, theirs, route)
        other_status, other_body, other_headers = told(client, method, nobodys, route)
        for one, other in zip(theirs.split("/"), nobodys.split("/"), strict=True):
            if one != other:
                other_body = other_body.replace(other.encode(), one.encode())

        assert (status, body) == (other_status, other_body), route
        assert status >= 300, route
        assert headers.keys() == other_headers.keys(), route
        compared += 1

    assert compared > 30
    assert world.facts() == before
