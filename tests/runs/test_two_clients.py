"""Whoever begins to read a run anywhere comes to the same (interactions.md A12, I99-I103)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.db import connections
from django.test import Client

from gates.keys import create_key
from obversa_site.asgi import application
from runs import fn_job, record
from runs.feeds import streams
from runs.models import Run
from tests import factories, flows

pytestmark = pytest.mark.django_db(transaction=True)
Seen = dict[int, str]


@pytest.fixture(autouse=True)
async def no_connection_left() -> AsyncIterator[None]:
    """The thread in which asynchronous tests reach the database outlives them."""
    yield
    await sync_to_async(connections.close_all)()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(streams, "STREAM_SECONDS", 0.06)


@pytest.fixture
def headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {create_key('watcher', ['read'])[1]}"}


def walked() -> Run:
    """A run with a question, its answer and an end."""
    run = flows.ran(factories.release_job(), conversation="c1")
    flows.answer(run, {"approved": True})
    flows.work(run)
    return flows.fresh(run)


def noted(conversation: str, count: int) -> Run:
    """A run that goes on, with so many lines in its record."""
    run = flows.start(fn_job("wait", lambda ctx: None), conversation=conversation)
    with record.turn(run.pk, actor="user:1") as turn:
        for number in range(count):
            turn.append("log", (), {"message": f"line {number}"})
    return flows.fresh(run)


def folded(events: Iterable[Any]) -> Seen:
    """What a client holds that took each event once, whole, by its number."""
    seen: Seen = {}
    for event in events:
        assert event["seq"] not in seen, "An event came twice."
        seen[event["seq"]] = json.dumps(event, sort_keys=True)
    return seen


async def streamed(client: Any, run: Run, after: int, headers: dict[str, str]) -> list[Any]:
    response = await client.get(
        f"/api/v1/runs/{run.pk}/stream", headers={**headers, "Last-Event-ID": str(after)}
    )
    body = b"".join([part async for part in response.streaming_content]).decode()
    return [json.loads(line) for line in re.findall(r"^data: (.*)$", body, re.MULTILINE)]


async def listed(
    client: Any, run: Run, after: int, headers: dict[str, str], limit: int
) -> list[Any]:
    found: list[Any] = []
    while True:
        path = f"/api/v1/runs/{run.pk}/events?after={after}&limit={limit}"
        part = (await client.get(path, headers=headers)).json()
        found += part["items"]
        if not part["items"]:
            assert after == part["head"]
            return found
        after = part["items"][-1]["seq"]


async def test_from_every_number_stream_and_list_come_to_the_same(
    async_client: Any, headers: dict[str, str]
) -> None:
    run = await sync_to_async(walked)()
    whole = folded(await listed(async_client, run, 0, headers, 200))
    assert list(whole) == list(range(1, run.last_seq + 1))

    for after in range(run.last_seq + 1):
        kept = {seq: text for seq, text in whole.items() if seq <= after}
        by_stream = folded(await streamed(async_client, run, after, headers))
        by_list = folded(await listed(async_client, run, after, headers, 1 + after % 4))
        assert kept | by_stream == kept | by_list == whole
        assert list(by_stream) == list(by_list) == list(range(after + 1, run.last_seq + 1))


def shown(html: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'id="event-(\d+)"', html)]


async def caught_up(run_id: UUID, after: int, cookie: str, last: int) -> list[int]:
    """The numbers that the socket of a page brings, which shows the events up to `after`."""
    headers = [
        (b"host", b"localhost"),
        (b"origin", b"http://localhost"),
        (b"cookie", f"sessionid={cookie}".encode()),
    ]
    socket = WebsocketCommunicator(application, f"/ws/runs/{run_id}/?after={after}", headers)
    assert (await socket.connect())[0]
    found: list[int] = []
    while after < last and (not found or found[-1] < last):
        found += shown(await socket.receive_from(10))
    assert await socket.receive_nothing(0.01)
    await socket.disconnect()
    return found


async def test_a_page_and_its_socket_show_what_the_record_has(client: Client) -> None:
    def opened() -> tuple[Run, str, list[int]]:
        run = walked()
        client.force_login(factories.user("ben", perms=["runs.view_run"]))
        page = client.get(f"/runs/{run.pk}/").content.decode()
        return run, client.cookies["sessionid"].value, shown(page)

    run, cookie, by_page = await sync_to_async(opened)()
    everything = list(range(1, run.last_seq + 1))

    assert by_page == everything
    for after in range(0, run.last_seq + 1, 3):
        assert await caught_up(run.pk, after, cookie, run.last_seq) == everything[after:]


async def test_a_run_of_the_same_conversation_hides_no_event_of_another(
    async_client: Any, headers: dict[str, str]
) -> None:
    """Whoever read far into one run begins the next one at its beginning (I100)."""
    first = await sync_to_async(noted)("c1", 57)
    second = await sync_to_async(noted)("c1", 3)
    assert first.last_seq > 57

    for run in (first, second):
        seen = folded(await streamed(async_client, run, 0, headers))
        assert list(seen) == list(range(1, run.last_seq + 1))
