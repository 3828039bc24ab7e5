"""No secret in what goes out by itself: frames of sockets, streams, mail, webhooks, routers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.core import mail
from django.db import connections
from django.test import Client

from gates import services
from gates.models import Channel, Delivery, Router, RouterCall
from gates.principals import Principal
from obversa_site.asgi import application
from runs import services as runs
from tests import factories, receivers
from tests.gates.notify import ways
from tests.gates.routers import service
from tests.site.pages.looking import said
from tests.site.pages.planted import SENSITIVE, log_lines, plant
from tests.site.walk import world_of_ada

WATCHERS: Final = ("ada", "ben")


@pytest.fixture(autouse=True)
async def no_connection_left() -> AsyncIterator[None]:
    """The thread in which asynchronous tests reach the database outlives them."""
    yield
    await sync_to_async(connections.close_all)()


@pytest.mark.django_db
def test_messages_and_their_deliveries_hold_no_secret(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    world_of_ada()
    planted = plant(monkeypatch)
    settings.OBVERSA_NOTIFY_PRIVATE = True
    settings.CELERY_BROKER_URL = None
    Channel.objects.exclude(kind="webhook").delete()
    ways.mail_to("ada")
    assert planted.gate is not None
    with receivers.receiver() as hook, service.serving() as answering, log_lines() as lines:
        Channel.objects.filter(kind="webhook").update(address=hook.url)
        Router.objects.update(url=answering.url)
        planted.texts["router's secret"] = Router.objects.get().secret
        asked = factories.external_request(
            gate_id="routed", input={"card": SENSITIVE}, presentation={"sensitive": ["/card"]},
            audience={"routers": ["planted"]}, router="planted",
        )  # fmt: skip
        factories.external_request(
            gate_id="told", input={"card": SENSITIVE}, presentation={"sensitive": ["/card"]},
            audience={"users": ["ada"], "groups": ["Release xyzzy"]},
        )  # fmt: skip
        service.posted()
        ways.send_all()
        out = [f"{headers} {body.decode()}" for headers, body in [*hook.got, *answering.got]]
        out += [str(one.message()) for one in mail.outbox]

    asked.refresh_from_db()
    assert asked.status == "answered"
    assert hook.got
    assert answering.got
    assert mail.outbox
    rows = [str(row) for model in (Delivery, RouterCall) for row in model.objects.values()]
    for text in [*out, *rows, *lines]:
        assert planted.found_in(text) == [], text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", WATCHERS)
async def test_frames_of_sockets_hold_no_secret(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    planted = await sync_to_async(plant)(monkeypatch)
    gate = planted.gate
    assert gate is not None
    client = await sync_to_async(_signed_in)(name)
    open_now = [
        WebsocketCommunicator(application, path, headers=_headers(client))
        for path in (f"/ws/runs/{gate.run_id}/?after=0", "/ws/inbox/")
    ]
    for one in open_now:
        assert (await one.connect())[0]

    def happens() -> None:
        token = planted.texts["claim token"]
        ada = Principal.for_user(factories.user("ada"), "browser")
        services.release(gate.pk, principal=ada, token=token)
        again = services.claim(gate.pk, principal=ada)
        planted.texts["next claim token"] = again.token or ""
        services.submit(
            gate.pk, principal=ada, token=again.token, digest=gate.digest,
            response={"approved": True},
        )  # fmt: skip

    await sync_to_async(happens)()
    frames = []
    for one in open_now:
        for _ in range(4):
            try:
                frames.append(str(await one.receive_output(timeout=1.5)))
            except TimeoutError:
                break
    for one in open_now:
        try:
            await one.disconnect()
        except asyncio.CancelledError:
            continue

    assert frames
    assert planted.found_in("\n".join(frames)) == []


@pytest.mark.django_db
@pytest.mark.parametrize("name", [*WATCHERS, "a key of nobody"])
def test_streams_and_records_hold_no_secret(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    planted = plant(monkeypatch)
    gate = planted.gate
    assert gate is not None
    runs.cancel_run(gate.run_id, actor="user:1", reason="over")
    headers = {"Authorization": f"Bearer {planted.texts['key']}"}
    if name == "a key of nobody":
        from gates.keys import create_key

        headers = {"Authorization": f"Bearer {create_key('nobodys', ['read'])[1]}"}
    client = _signed_in(name) if name in WATCHERS else Client(headers=headers)

    told = [said(client.get(f"/api/v1/runs/{gate.run_id}/{what}")) for what in ("events", "stream")]
    told.append(said(client.get(f"/api/v1/requests/{gate.pk}/history")))

    assert all("callback-requested" in text for text in told)
    assert planted.found_in("\n".join(told)) == []


def _signed_in(name: str) -> Client:
    client = Client()
    perms = ["runs.view_run", "gates.view_request"] if name == "ben" else []
    client.force_login(factories.user(name, perms=perms))
    return client


def _headers(client: Client) -> list[tuple[bytes, bytes]]:
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    return [
        (b"host", b"localhost"), (b"origin", b"http://localhost"),
        (b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()),
    ]  # fmt: skip
