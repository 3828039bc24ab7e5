"""Sockets: who may open one, and what ends it, done as people do it in the admin and elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import connections
from django.test import Client

from obversa_site.asgi import application
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

HERE: Final = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
Headers = list[tuple[bytes, bytes]]


@pytest.fixture(autouse=True)
async def no_connection_left() -> AsyncIterator[None]:
    """The thread in which asynchronous tests reach the database outlives them."""
    yield
    await sync_to_async(connections.close_all)()


def signed_in(name: str = "ada", **facts: Any) -> Client:
    client = Client()
    client.force_login(factories.user(name, **facts))
    return client


def cookie_of(client: Client) -> Headers:
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    return [(b"cookie", f"{settings.SESSION_COOKIE_NAME}={value}".encode())]


@pytest.mark.parametrize(
    "headers",
    [
        [(b"host", b"evil.example.com"), (b"origin", b"http://evil.example.com")],
        [(b"host", b"localhost"), (b"origin", b"http://evil.example.com")],
        [(b"host", b"evil.example.com"), (b"origin", b"http://localhost")],
        [(b"host", b"localhost"), (b"origin", b"null")],
        [(b"host", b"localhost"), (b"origin", b"")],
        [(b"host", b"localhost")],
        [(b"origin", b"http://localhost")],
        [(b"host", b"localhost:8000"), (b"origin", b"http://localhost:3000")],
        [(b"host", b"localhost"), (b"origin", b"http://localhost@evil.example.com")],
        [(b"host", b"localhost"), (b"origin", b"http://localhost.evil.example.com")],
        [(b"host", b"localhost"), (b"origin", b"\xff\xfe\x00")],
        [(b"host", b"localhost"), (b"origin", b"http://[::1")],
        [(b"host", b"[::1"), (b"origin", b"http://[::1")],
        [(b"host", b"\xe2\x80\xae"), (b"origin", b"http://\xe2\x80\xae")],
        [(b"host", b"evil.example.com"), (b"x-forwarded-host", b"localhost"),
         (b"origin", b"http://evil.example.com")],
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/ws/inbox/", "run"])
async def test_another_host_or_origin_opens_no_socket(path: str, headers: Headers) -> None:
    client = await sync_to_async(signed_in)()
    if path == "run":
        path = f"/ws/runs/{(await sync_to_async(factories.pending_gate)()).run_id}/"
    socket = WebsocketCommunicator(application, path, headers=headers + cookie_of(client))

    opened, _ = await socket.connect()

    assert opened is False


@pytest.mark.parametrize(
    "cookie",
    [b"", b"sessionid=", b"sessionid=" + b"x" * 32, b"sessionid=\xff", b"sessionid" * 9000],
)
async def test_a_made_up_session_opens_no_socket(cookie: bytes) -> None:
    for path in ("/ws/inbox/", "/ws/runs/00000000-0000-0000-0000-000000000000/"):
        socket = WebsocketCommunicator(application, path, headers=[*HERE, (b"cookie", cookie)])
        assert (await socket.connect())[0] is False


async def test_what_is_said_to_a_socket_is_not_heard() -> None:
    client = await sync_to_async(signed_in)()
    socket = WebsocketCommunicator(application, "/ws/inbox/", headers=HERE + cookie_of(client))
    assert (await socket.connect())[0]

    for said in ("{}", '{"type": "websocket.close"}', "x" * 500_000):
        await socket.send_to(text_data=said)
    await socket.send_to(bytes_data=b"\xff" * 500_000)

    # It may tell its own news meanwhile; it closes for nothing that is said to it.
    while not await socket.receive_nothing(timeout=0.2):
        assert (await socket.receive_output())["type"] == "websocket.send"
    await socket.disconnect()


def _deactivated(root: Client, ada: User) -> None:
    """Untick "Active" in the admin."""
    page = root.get(f"/admin/auth/user/{ada.pk}/change/")
    form = page.context["adminform"].form
    given = {
        name: value for name, value in form.initial.items()
        if isinstance(value, str) and name != "password"
    } | {"username": "ada", "groups": [group.pk for group in ada.groups.all()]}  # fmt: skip
    given |= {"date_joined_0": "2026-01-01", "date_joined_1": "09:00:00"}
    saved = root.post(f"/admin/auth/user/{ada.pk}/change/", given)
    assert saved.status_code == 302, saved.context["adminform"].form.errors
    assert not User.objects.get(pk=ada.pk).is_active


def _new_password(root: Client, ada: User) -> None:
    """Give somebody another password in the admin."""
    new = "a good long password of hers"
    given = {"password1": new, "password2": new, "usable_password": "true"}
    assert root.post(f"/admin/auth/user/{ada.pk}/password/", given).status_code == 302
    assert User.objects.get(pk=ada.pk).check_password(new)


def _out_of_the_team(root: Client, ada: User) -> None:
    ada.groups.clear()


def _team_deleted(root: Client, ada: User) -> None:
    group = Group.objects.get(name="Release")
    assert root.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"}).status_code == 302


def _sessions_deleted(root: Client, ada: User) -> None:
    Session.objects.all()[0].delete()


@pytest.mark.parametrize(
    "act", [_deactivated, _new_password, _out_of_the_team, _team_deleted, _sessions_deleted]
)
async def test_a_right_that_is_taken_closes_the_page_that_is_open(
    act: Callable[[Client, User], None],
) -> None:
    gate = await sync_to_async(factories.pending_gate)(audience={"groups": ["Release"]})
    ada = await sync_to_async(factories.user)("ada", groups=["Release"])
    client = await sync_to_async(signed_in)()
    socket = WebsocketCommunicator(
        application, f"/ws/runs/{gate.run_id}/?after=999", headers=HERE + cookie_of(client)
    )
    assert (await socket.connect())[0]
    root = await sync_to_async(signed_in)("root", is_superuser=True, is_staff=True)

    await sync_to_async(act)(root, ada)

    while (said := await socket.receive_output(timeout=10))["type"] != "websocket.close":
        pass
    assert said["code"] in (4401, 4404)
    await socket.disconnect()
