from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from gates import keys, services
from gates.models import ApiKey, Request
from runs.people.principals import Principal
from tests import factories
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db
RELEASE = {"groups": ["Release"]}


def test_a_team_is_shown_to_its_members_with_what_waits() -> None:
    member = factories.person("ada", groups=["Release"])
    factories.external_request(audience=RELEASE)
    group = Group.objects.get(name="Release")

    teams = page_of(client_of(member).get("/teams/"))
    assert "1 open" in teams.by_id(f"team-{group.pk}").text
    queue = page_of(client_of(member).get(f"/teams/{group.pk}/"))
    assert len(queue.by_id("team-queue").children) == 1
    assert client_of(factories.cyd()).get(f"/teams/{group.pk}/").status_code == 404


def test_a_team_with_thirty_questions_takes_as_many_statements_as_with_one() -> None:
    member = factories.person("ada", groups=["Release"])
    client = client_of(member)
    group = Group.objects.get(name="Release")

    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/teams/{group.pk}/")
        return len(queries)

    factories.external_request(audience=RELEASE)
    statements()
    few = statements()
    for _ in range(29):
        factories.external_request(audience=RELEASE)
    assert statements() == few


def test_a_key_is_shown_once_and_ends_when_it_is_revoked() -> None:
    client = client_of(factories.ada())
    response = client.post("/settings/keys/", {"name": "bot", "scopes": ["read"]})
    shown = page_of(response).one(class_="new-key-text mono").text.removesuffix("copy").strip()
    key = ApiKey.objects.get(name="bot")

    assert keys.find_key(shown) == key
    again = client.get("/settings/").content.decode()
    assert shown not in again
    assert key.hash not in again
    assert client_of(factories.cyd()).post(f"/settings/keys/{key.pk}/revoke/").status_code == 404
    client.post(f"/settings/keys/{key.pk}/revoke/")
    assert keys.find_key(shown) is None


@pytest.mark.parametrize(("given", "days"), [({}, 90), ({"days": "7"}, 7), ({"days": "0"}, None)])
def test_a_key_shows_when_it_ends(given: dict[str, str], days: int | None) -> None:
    client = client_of(factories.ada())
    client.post("/settings/keys/", {"name": "bot", "scopes": ["read"], **given})

    key = ApiKey.objects.get(name="bot")
    page = page_of(client.get("/settings/"))
    told = [(time.get("datetime") or "")[:10] for time in page.all("time")]
    if days is None:
        assert key.expires_at is None
        assert told == []
    else:
        assert key.expires_at is not None
        assert (key.expires_at - key.created_at).days in (days - 1, days)
        assert f"{key.expires_at:%Y-%m-%d}" in told


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"name": "x"},
        {"name": "x", "scopes": ["everything"]},
        {"name": "x", "scopes": ["read"], "days": "4000"},
    ],
)
def test_a_key_without_a_name_or_a_known_right_is_not_made(given: dict[str, Any]) -> None:
    response = client_of(factories.ada()).post("/settings/keys/", given)

    assert response.status_code == 422
    assert not ApiKey.objects.exists()


@pytest.fixture
def admin() -> User:
    return User.objects.create_superuser("root", password="x")


def test_the_admin_shows_questions_and_changes_none(admin: User) -> None:
    row = factories.external_request()
    client = client_of(Principal.for_user(admin))
    address = reverse("admin:gates_request_change", args=[row.pk])

    page = page_of(client.get(address))
    assert "callback-requested" in page.one(class_="form-row field-story").text
    assert client.post(address, {"status": "answered"}).status_code == 403
    assert client.get(reverse("admin:gates_request_add")).status_code == 403
    assert client.post(reverse("admin:gates_request_delete", args=[row.pk])).status_code == 403


@pytest.mark.parametrize("search", ["digest", "run", "gate"])
def test_the_admin_finds_a_question_by_what_people_quote(admin: User, search: str) -> None:
    row = factories.external_request(gate_id="find-me")
    factories.external_request(gate_id="other")
    client = client_of(Principal.for_user(admin))
    q = {"digest": row.digest[:9], "run": str(row.run_id)[:8], "gate": "find-me"}[search]

    page = page_of(client.get(reverse("admin:gates_request_changelist"), {"q": q}))

    assert len(page.all("input", class_="action-select")) == 1


def test_the_admins_rescue_asks_for_a_reason_and_records_it(admin: User) -> None:
    row = factories.external_request()
    services.claim(row.pk, principal=factories.ada())
    client = client_of(Principal.for_user(admin))
    address = reverse("admin:gates_request_changelist")
    chosen = {"action": "force_release", "_selected_action": [str(row.pk)]}

    asked = client.post(address, chosen)
    assert page_of(asked).one("input", name="reason").get("required") == ""
    assert client.post(address, chosen | {"confirmed": "yes", "reason": " "}).status_code == 422
    row.refresh_from_db()
    assert row.status == Request.Status.CLAIMED
    client.post(address, chosen | {"confirmed": "yes", "reason": "She is away"})

    row.refresh_from_db()
    assert row.status == Request.Status.PENDING
    event = row.run.events.get(kind="callback-force-released")
    assert (event.actor, event.surface) == (f"user:{admin.pk}", "admin")
    assert event.payload["reason"] == "She is away"


def test_the_admin_shows_no_hash_and_revokes(admin: User) -> None:
    key, _ = keys.create_key("bot", ["read"])
    client = client_of(Principal.for_user(admin))
    listed = client.get(reverse("admin:gates_apikey_changelist"))
    shown = client.get(reverse("admin:gates_apikey_change", args=[key.pk]))

    assert key.hash not in listed.content.decode() + shown.content.decode()
    client.post(
        reverse("admin:gates_apikey_changelist"),
        {"action": "revoke", "_selected_action": [key.pk]},
    )
    key.refresh_from_db()
    assert key.revoked_at is not None
