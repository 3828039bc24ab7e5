"""No secret in any answer, any line of the log, any event and any message that goes out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.test import Client

from runs.models import Event
from tests import brokers, factories
from tests.site.pages.looking import ROLES, Looker, said
from tests.site.pages.planted import Planted, log_lines, plant
from tests.site.walk import World, world_of_ada

pytestmark = pytest.mark.django_db

# What may stand where: the holder's own form holds the token, administrators read everything.
HOLDER: Final = frozenset({"claim token"})
MAY_READ: Final = {"root": frozenset({"sensitive value"})}


@pytest.fixture
def world() -> World:
    return world_of_ada()


@pytest.fixture
def planted(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planted]:
    yield plant(monkeypatch)
    brokers.forget()


def everywhere(world: World, planted: Planted) -> Iterator[tuple[World, str]]:
    """What is ada's, and where it leads to it the question with the sensitive value she holds."""
    assert planted.gate is not None
    yield world, ""
    gate = planted.gate
    yield (
        World(
            gate,
            world.values
            | {
                "gates": gate.pk,
                "requests": gate.pk,
                "runs": gate.run_id,
                "questions": gate.digest,
                "object_id": gate.pk,
            },
        ),
        "{gates} {requests} {runs} {questions} {object_id}",
    )


@pytest.mark.parametrize("role", ROLES)
def test_no_answer_and_no_line_of_the_log_holds_a_secret(
    world: World, planted: Planted, role: str
) -> None:
    looker = Looker.called(role)
    found: dict[str, list[str]] = {}
    asked = 0
    with log_lines() as lines:
        for place, about in everywhere(world, planted):
            for method in ("get", "post"):
                for route, path, response in looker.everything(place, method, about=about):
                    asked += 1
                    is_holders = role == "ada" and path.startswith(f"/gates/{planted.gate.pk}/")  # type: ignore[union-attr]
                    but = MAY_READ.get(role, frozenset()) | (HOLDER if is_holders else frozenset())
                    if held := planted.found_in(said(response), but=but):
                        found[f"{method} {route}"] = held

    assert found == {}
    assert asked > 300
    assert planted.found_in("\n".join(lines)) == []


def test_events_hold_no_secret(world: World, planted: Planted) -> None:
    """The record holds the whole question, so what is sensitive in it as well."""
    told = "\n".join(
        json.dumps(row, default=str)
        for row in Event.objects.values("kind", "actor", "payload", "path")
    )

    assert "claimed" in told
    assert planted.found_in(told, but=frozenset({"sensitive value"})) == []


@pytest.mark.parametrize("debug", [False])
def test_a_fault_of_ours_tells_nothing_of_what_was_at_hand(
    planted: Planted, monkeypatch: pytest.MonkeyPatch, debug: bool
) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        at_hand = dict(planted.texts)
        raise RuntimeError(f"{len(at_hand)} at hand")

    monkeypatch.setattr("gates.access.find", failing)
    monkeypatch.setattr("gates.lists.inbox_page.page_of", failing, raising=False)
    client = Client(raise_request_exception=False)
    client.force_login(factories.user("root", is_superuser=True, is_staff=True))
    assert planted.gate is not None
    statuses = []
    with log_lines() as lines:
        for path in (f"/gates/{planted.gate.pk}/", f"/api/v1/requests/{planted.gate.pk}"):
            answer = client.get(path)
            statuses.append(answer.status_code)
            assert planted.found_in(said(answer)) == []
            assert "Traceback" not in said(answer)
            assert "at hand" not in said(answer)

    assert 500 in statuses
    assert planted.found_in("\n".join(lines)) == []
    assert any("at hand" in line for line in lines)
