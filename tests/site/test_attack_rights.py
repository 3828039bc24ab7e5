"""Getting at what belongs to others: by keys, audiences, sockets and broken files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from gates import keys, services
from gates.errors import DefinitionRefused
from gates.models import Request
from gates.principals import principal_for_key
from obversa_site.asgi import application
from runs import fn_job, registry
from runs.access import Forbidden, NotVisible, visible_runs, visible_workflows
from runs.feeds import places, tails
from runs.models import Run
from runs.people.audiences import AudienceRefused, tokens_of
from runs.people.principals import Principal
from tests import factories, flows

pytestmark = pytest.mark.django_db(transaction=True)

YES = {"approved": True}


@pytest.fixture(autouse=True)
async def no_connection_left() -> AsyncIterator[None]:
    """The thread in which asynchronous tests reach the database outlives them."""
    yield
    await sync_to_async(connections.close_all)()


# --- keys and audiences ---------------------------------------------------------------------------


def test_a_key_made_by_oneself_is_not_the_program_a_question_is_for() -> None:
    gate = factories.external_request(audience={"keys": ["deploy-bot"]}, by=factories.key("asker"))
    squatter, _ = keys.create_key("deploy-bot", ["read", "answer"], factories.user("cyd"))

    with pytest.raises(NotVisible):
        services.submit(
            gate.pk,
            principal=principal_for_key(squatter),
            token=None,
            digest=gate.digest,
            response=YES,
        )

    gate.refresh_from_db()
    assert gate.status == Request.Status.PENDING


@pytest.mark.parametrize("part", ["users", "groups", "permissions", "keys"])
def test_a_list_with_nobody_in_it_is_not_everybody(part: str) -> None:
    with pytest.raises(AudienceRefused, match="names nobody"):
        tokens_of({part: []})
    with pytest.raises(DefinitionRefused, match="audience"):
        factories.external_request(audience={part: []})

    gate = factories.pending_gate(audience={part: []})

    with pytest.raises(NotVisible):
        services.claim(gate.pk, principal=factories.cyd())
    assert tokens_of({}) == tokens_of(None) == ["everyone"]


def test_who_asked_by_a_key_of_their_own_does_not_answer_as_themselves() -> None:
    eve = factories.person("eve")
    hers = factories.key("eves", ["read", "start", "answer"], user=eve.user)
    second = factories.key("eves-too", ["answer"], user=eve.user)
    gate = factories.external_request(audience={}, by=hers, excludeRequester=True)

    for who in (eve, hers, second):
        with pytest.raises(Forbidden, match="Whoever asked"):
            services.claim(gate.pk, principal=who)
    services.claim(gate.pk, principal=factories.ada())


def test_nobody_starts_a_workflow_they_may_not_see(client: Client) -> None:
    flows.offer(fn_job("f", lambda ctx: None), name="secret", audience=factories.FOR_ADA)
    client.force_login(factories.user("cyd"))

    page = client.post("/workflows/secret/start/", {})
    called = client.post("/api/v1/runs", {"workflow": "secret"}, content_type="application/json")
    unknown = client.post("/api/v1/runs", {"workflow": "secreu"}, content_type="application/json")

    assert (page.status_code, called.status_code) == (404, 404)
    assert called.content == unknown.content.replace(b"secreu", b"secret")
    assert not Run.objects.exists()


def test_a_workflow_that_breaks_is_shown_to_whom_it_was_shown_before() -> None:
    flows.offer(fn_job("f", lambda ctx: None), name="secret", audience=factories.FOR_ADA)

    registry._enlist_broken("secret", "secret", "KeyError: 'a token'")
    registry._enlist_broken("new", "new", "KeyError: 'another token'")

    def shown(who: Principal) -> set[str]:
        return {row.name for row in visible_workflows(who) if row.error}

    assert shown(factories.ada()) == {"secret"}
    assert shown(factories.ben()) == {"secret", "new"}
    assert shown(factories.cyd()) == set()


def test_a_body_sets_nothing_but_what_it_is_asked_for(client: Client) -> None:
    client.force_login(factories.user("ada"))
    gate = factories.pending_gate()

    def post(path: str, body: dict[str, Any]) -> int:
        answer = client.post(f"/api/v1{path}", body, content_type="application/json")
        return answer.status_code

    forged = {"digest": gate.digest, "response": YES}
    for extra in ({"actor": "user:1"}, {"holder": "user:1"}, {"surface": "admin"}):
        assert post(f"/requests/{gate.pk}/submit", forged | extra) == 422
    assert post(f"/requests/{gate.pk}/claim", {"routerId": "key:bot/a"}) == 422
    assert post(f"/requests/{gate.pk}/submit", forged | {"claimToken": "0" * 40}) == 409
    assert post(f"/requests/{gate.pk}/submit", forged | {"digest": "0" * 64}) == 409
    gate.refresh_from_db()
    assert gate.status == Request.Status.PENDING


@pytest.mark.parametrize(
    "forged",
    [
        {"digest": "0" * 64},
        {"digest": ""},
        {"claim_token": "0" * 40},
        {"claim_token": "é\ud800".encode("utf-8", "replace").decode()},
    ],
)
def test_a_form_with_forged_fields_records_nothing(client: Client, forged: dict[str, str]) -> None:
    ada = factories.ada()
    client.force_login(factories.user("ada"))
    gate = factories.pending_gate()
    token = services.claim(gate.pk, principal=ada).token
    sent = {"f-approved": "true", "digest": gate.digest, "claim_token": token, "kept": "on"}

    assert client.post(f"/gates/{gate.pk}/answer/", sent | forged).status_code == 409

    gate.refresh_from_db()
    assert gate.status == Request.Status.CLAIMED


# --- sockets and held connections -----------------------------------------------------------------


def socket(path: str, client: Client, origin: str = "http://localhost") -> WebsocketCommunicator:
    cookie = client.cookies.get(settings.SESSION_COOKIE_NAME)
    headers = [
        (b"host", b"localhost"),
        (b"origin", origin.encode()),
        (b"cookie", f"sessionid={cookie.value if cookie else ''}".encode()),
    ]
    return WebsocketCommunicator(application, path, headers=headers)


async def opens(path: str, client: Client, origin: str = "http://localhost") -> bool:
    communicator = socket(path, client, origin)
    opened, _ = await communicator.connect()
    await communicator.disconnect()
    return bool(opened)


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(factories.user(name))
    return client


async def test_a_socket_is_opened_for_those_who_may_look_by_this_site_alone() -> None:
    run = (await sync_to_async(factories.pending_gate)()).run
    ada, cyd = await sync_to_async(signed_in)("ada"), await sync_to_async(signed_in)("cyd")

    assert await opens(f"/ws/runs/{run.pk}/", ada)
    assert not await opens(f"/ws/runs/{run.pk}/", cyd)
    assert not await opens(f"/ws/runs/{run.pk}/", Client())
    assert await opens("/ws/inbox/", cyd)
    assert not await opens("/ws/inbox/", Client())
    for origin in ("http://evil.example.com", "http://localhost:3000", "null", ""):
        assert not await opens("/ws/inbox/", ada, origin)
        assert not await opens(f"/ws/runs/{run.pk}/", ada, origin)


@pytest.mark.parametrize("ending", ["signs out", "leaves", "loses the right"])
@pytest.mark.parametrize("path", ["/ws/runs/{run}/?after=999", "/ws/inbox/"])
async def test_a_socket_closes_when_its_person_may_not_look_any_more(
    path: str, ending: str
) -> None:
    gate = await sync_to_async(factories.pending_gate)(audience={"groups": ["Release"]})
    ada = await sync_to_async(factories.user)("ada", groups=["Release"])
    client = await sync_to_async(signed_in)("ada")
    communicator = socket(path.format(run=gate.run_id), client)
    assert (await communicator.connect())[0]

    # Nothing happens that there would be news of.
    if ending == "signs out":
        await sync_to_async(client.logout)()
    elif ending == "leaves":
        ada.is_active = False
        await sync_to_async(ada.save)()
    else:
        await sync_to_async(ada.groups.clear)()

    if path == "/ws/inbox/" and ending == "loses the right":
        return  # an inbox is everybody's own
    said = await last_output(communicator)
    assert (said["type"], said["code"]) == ("websocket.close", 4401 if "inbox" in path else 4404)
    await communicator.disconnect()


async def test_a_right_that_ends_without_a_ring_is_noticed_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tails, "ASK_AGAIN_SECONDS", 0.0)
    gate = await sync_to_async(factories.pending_gate)()
    ada = await sync_to_async(factories.user)("ada")
    communicator = socket(
        f"/ws/runs/{gate.run_id}/?after=999", await sync_to_async(signed_in)("ada")
    )
    assert (await communicator.connect())[0]

    await sync_to_async(User.objects.filter(pk=ada.pk).update)(is_active=False)

    said = await last_output(communicator)
    assert (said["type"], said["code"]) == ("websocket.close", 4404)
    await communicator.disconnect()


async def last_output(communicator: WebsocketCommunicator) -> dict[str, Any]:
    """What the socket says last, past the frames it sent before."""
    while True:
        said: dict[str, Any] = await communicator.receive_output(timeout=10)
        if said["type"] == "websocket.close":
            return said


@pytest.mark.parametrize("second", ["/ws/inbox/", "run"])
async def test_one_person_holds_so_many_sockets_and_no_more(
    monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    monkeypatch.setattr(places, "SOCKETS_PER_PERSON", 1)
    run = (await sync_to_async(factories.pending_gate)()).run
    path = f"/ws/runs/{run.pk}/" if second == "run" else second
    ada, eve = await sync_to_async(signed_in)("ada"), await sync_to_async(signed_in)("eve")
    first = socket("/ws/inbox/", ada)
    assert (await first.connect())[0]

    refused = socket(path, ada)

    assert await refused.connect() == (False, 4429)
    assert await opens("/ws/inbox/", eve)
    await first.disconnect()
    assert await opens(path, ada)
    assert await opens(path, ada)


async def test_one_caller_holds_so_many_connections_and_no_more(
    async_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "PER_CALLER", 1)
    run = await sync_to_async(factories.make_run)()
    _, one = await sync_to_async(keys.create_key)("one", ["read"])
    _, two = await sync_to_async(keys.create_key)("two", ["read"])
    path = f"/api/v1/runs/{run.pk}"

    async def ask(key: str, what: str) -> Any:
        return await async_client.get(path + what, headers={"Authorization": f"Bearer {key}"})

    held = await ask(one, "/stream")
    await anext(aiter(held))
    refused = [await ask(one, "/stream"), await ask(one, "/events?after=99&wait=5")]

    assert [answer.status_code for answer in refused] == [429, 429]
    assert refused[0].headers["Retry-After"] == "2"
    assert (await ask(one, "/events")).status_code == 200
    assert (await ask(two, "/stream")).status_code == 200
    held.close()
    assert (await ask(one, "/stream")).status_code == 200
    assert places.held_by("key:one") == 0


def test_a_revoked_key_is_refused_in_the_middle_of_its_work() -> None:
    gate = factories.external_request(audience={"keys": ["bot"]}, by=factories.key("asker"))
    key, _ = keys.create_key("bot", ["read", "claim", "answer"])
    who = principal_for_key(key)
    token = services.claim(gate.pk, principal=who).token
    keys.revoke(key)

    with pytest.raises(Forbidden):
        services.submit(gate.pk, principal=who, token=token, digest=gate.digest, response=YES)

    assert Request.objects.get(pk=gate.pk).status == Request.Status.CLAIMED


def test_runs_of_others_are_not_in_the_list_of_a_key_of_ones_own() -> None:
    factories.make_run(factories.release_job(audience={"users": ["ben"]}))
    hers = factories.key("cyds", ["read"], user=factories.cyd().user)

    assert list(visible_runs(hers)) == []


def test_the_secrets_of_the_service_are_readable_by_its_owner_alone() -> None:
    home = Path(settings.OBVERSA_HOME)

    assert home.stat().st_mode & 0o077 == 0
