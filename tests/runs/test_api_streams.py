from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.db import connections
from django.test import Client

from gates.keys import create_key
from runs import fn_job, live, record, services
from runs.feeds import streams
from runs.models import Run
from tests import factories, flows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def no_connection_left() -> AsyncIterator[None]:
    """The thread in which asynchronous tests reach the database outlives them."""
    yield
    await sync_to_async(connections.close_all)()


@pytest.fixture
def key() -> str:
    return create_key("watcher", ["read"])[1]


@pytest.fixture
def headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def run() -> Run:
    return factories.make_run()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_SECONDS", 0.0)


def note(run: Run, text: str) -> None:
    with record.turn(run.pk, actor="user:1") as turn:
        turn.append("log", (), {"message": text})


async def frames(response: Any) -> AsyncIterator[str]:
    async for part in response.streaming_content:
        for frame in part.decode().split("\n\n"):
            if frame:
                yield frame


def told(frame: str) -> tuple[int, Any]:
    lines = dict(line.split(": ", 1) for line in frame.split("\n"))
    return int(lines["id"]), json.loads(lines["data"])


async def next_event(stream: AsyncIterator[str]) -> tuple[int, Any]:
    async for frame in stream:
        if frame.startswith("id: "):
            return told(frame)
    raise AssertionError("The stream ended.")


def at(run: Run, what: str) -> str:
    return f"/api/v1/runs/{run.pk}/{what}"


async def test_a_stream_tells_what_is_recorded_and_what_comes(
    async_client: Any, headers: dict[str, str], run: Run
) -> None:
    response = await async_client.get(at(run, "stream"), headers=headers)

    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-store"
    stream = frames(response)
    assert await anext(stream) == "retry: 2000"
    for seq in range(1, run.last_seq + 1):
        number, event = await next_event(stream)
        assert number == event["seq"] == seq
    await sync_to_async(note)(run, "later")
    number, event = await next_event(stream)
    assert (number, event["message"]) == (run.last_seq + 1, "later")


async def test_a_stream_goes_on_after_the_last_event_seen(
    async_client: Any, headers: dict[str, str], run: Run
) -> None:
    seen = {**headers, "Last-Event-ID": "2"}
    response = await async_client.get(at(run, "stream?after=1"), headers=seen)

    number, _ = await next_event(frames(response))

    assert number == 3


async def test_a_stream_ends_with_its_run(async_client: Any, headers: dict[str, str]) -> None:
    ended = await sync_to_async(flows.ran)(fn_job("f", lambda ctx: None), name="quick")
    response = await async_client.get(at(ended, "stream"), headers=headers)

    got = [told(frame) async for frame in frames(response) if frame.startswith("id: ")]

    assert [number for number, _ in got] == list(range(1, ended.last_seq + 1))
    assert got[-1][1]["kind"] == "run:end"


async def test_a_stream_ends_when_its_run_does(
    async_client: Any, headers: dict[str, str], run: Run
) -> None:
    response = await async_client.get(at(run, f"stream?after={run.last_seq}"), headers=headers)

    async def kinds() -> list[str]:
        return [
            told(frame)[1]["kind"] async for frame in frames(response) if frame.startswith("id: ")
        ]

    reading = asyncio.create_task(kinds())
    await sync_to_async(services.cancel_run)(run.pk, actor="user:1")

    assert (await asyncio.wait_for(reading, 10))[-1] == "run:end"


async def test_a_quiet_stream_shows_that_it_lives(
    async_client: Any,
    headers: dict[str, str],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "LOOK_SECONDS", 0.05)
    response = await async_client.get(at(run, f"stream?after={run.last_seq}"), headers=headers)

    stream = frames(response)
    await anext(stream)

    assert await anext(stream) == ": still here"


async def test_a_stream_is_cut_after_its_time_and_goes_on_elsewhere(
    async_client: Any,
    headers: dict[str, str],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(streams, "STREAM_SECONDS", 0.1)
    response = await async_client.get(at(run, "stream"), headers=headers)

    got = [frame async for frame in frames(response) if frame.startswith("id: ")]

    assert len(got) == run.last_seq


@pytest.mark.parametrize(
    ("seen", "first"), [("2", 3), ("x", 1), ("-1", 1), ("1.5", 1), ("²", 1), (str(2**63), 1)]
)
async def test_a_last_event_wins_over_after_and_one_that_is_no_number_says_nothing(
    async_client: Any, headers: dict[str, str], run: Run, seen: str, first: int
) -> None:
    asked = "stream?after=1" if seen == "2" else "stream"

    response = await async_client.get(at(run, asked), headers={**headers, "Last-Event-ID": seen})
    stream = frames(response)
    got = [await anext(stream), await anext(stream)]

    assert any(frame.startswith(f"id: {first}\n") for frame in got)


async def test_a_lost_ring_costs_one_look(
    async_client: Any,
    headers: dict[str, str],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(live.hub, "ring", lambda topic: None)
    response = await async_client.get(at(run, f"stream?after={run.last_seq}"), headers=headers)
    stream = frames(response)
    await anext(stream)

    await sync_to_async(note)(run, "unheard")

    assert (await next_event(stream))[1]["message"] == "unheard"


async def test_those_who_watch_from_the_same_place_share_a_reading(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[int] = []
    real = streams.read

    def counted(run_id: Any, after: int, limit: int) -> Any:
        readings.append(after)
        return real(run_id, after, limit)

    monkeypatch.setattr(streams, "read", counted)
    together = streams.Readings()

    found = await asyncio.gather(*(together.read(run.pk, 0, 10) for _ in range(50)))

    assert len(readings) == 1
    assert all(piece is found[0] for piece in found)
    assert together._starting == {}


# Waiting for an event


async def test_a_caller_that_waits_gets_the_next_event(
    async_client: Any, headers: dict[str, str], run: Run
) -> None:
    address = at(run, f"events?after={run.last_seq}&wait=20")
    response = await async_client.get(address, headers=headers)
    assert response.headers["Content-Type"] == "application/json"

    async def body() -> Any:
        return json.loads(b"".join([part async for part in response.streaming_content]))

    reading = asyncio.create_task(body())
    await asyncio.sleep(0.05)
    assert not reading.done()
    await sync_to_async(note)(run, "now")

    found = await asyncio.wait_for(reading, 10)
    assert [event["message"] for event in found["items"]] == ["now"]
    assert found["head"] == run.last_seq + 1


async def test_a_caller_that_waits_in_vain_gets_nothing_when_the_time_is_over(
    async_client: Any, headers: dict[str, str], run: Run
) -> None:
    address = at(run, f"events?after={run.last_seq}&wait=0.1")
    response = await async_client.get(address, headers=headers)

    body = json.loads(b"".join([part async for part in response.streaming_content]))

    assert body == {"items": [], "head": run.last_seq}


async def test_nobody_waits_for_what_is_there_or_for_a_run_that_ended(
    async_client: Any, headers: dict[str, str], run: Run
) -> None:
    ended = await sync_to_async(flows.ran)(fn_job("f", lambda ctx: None), name="quick")

    there = await async_client.get(at(run, "events?wait=30"), headers=headers)
    over = await async_client.get(
        at(ended, f"events?after={ended.last_seq}&wait=30"), headers=headers
    )

    assert len(there.json()["items"]) == run.last_seq
    assert over.json() == {"items": [], "head": ended.last_seq}


def test_without_an_event_loop_it_works_too(run: Run, headers: dict[str, str]) -> None:
    ended = flows.ran(fn_job("f", lambda ctx: None), name="quick")
    client: Any = Client()

    stream = client.get(at(ended, "stream"), headers=headers)
    waited = client.get(at(run, f"events?after={run.last_seq}&wait=0.05"), headers=headers)

    assert b"run:end" in b"".join(stream.streaming_content)
    assert waited.json() == {"items": [], "head": run.last_seq}


# Through the whole server stack


def scope(path: str, key: str) -> dict[str, Any]:
    where, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": where,
        "raw_path": where.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {key}".encode())],
    }


async def opened(path: str, key: str) -> Any:
    """A client that has sent its request and holds the beginning of the answer."""
    communicator: Any = ApplicationCommunicator
    client = communicator(get_asgi_application(), scope(path, key))
    await client.send_input({"type": "http.request", "body": b""})
    start = await client.receive_output(10)
    assert start["status"] == 200
    return client


async def until(condition: Any) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("It did not come to that.")


@pytest.mark.parametrize("what", ["stream?after=", "events?wait=30&after="])
async def test_a_client_that_leaves_takes_everything_with_it(key: str, run: Run, what: str) -> None:
    client = await opened(at(run, f"{what}{run.last_seq}"), key)
    topic = live.run_topic(run.pk)
    await until(lambda: topic in live.hub._bells)

    await client.send_input({"type": "http.disconnect"})
    await client.wait(10)

    assert topic not in live.hub._bells
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await until(lambda: all(task.done() for task in others))


async def test_those_who_watch_hold_no_threads(key: str, run: Run) -> None:
    first = await opened(at(run, f"stream?after={run.last_seq}"), key)
    await until(lambda: live.run_topic(run.pk) in live.hub._bells)
    before = threading.active_count()

    address = at(run, f"stream?after={run.last_seq}")
    watching = [first, *[await opened(address, key) for _ in range(20)]]
    topic = live.run_topic(run.pk)
    await until(lambda: len(live.hub._bells[topic]) == 21)
    await until(lambda: threading.active_count() <= before + 4)

    for client in watching:
        await client.send_input({"type": "http.disconnect"})
        await client.wait(10)
    assert topic not in live.hub._bells


async def test_a_file_is_sent_piece_by_piece(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.artifacts.store.CHUNK", 4)

    def attach(ctx: Any) -> None:
        ctx.attach("a.txt", b"0123456789", "text/plain")

    run = await sync_to_async(flows.ran)(fn_job("attach", attach), name="files")
    row = await sync_to_async(run.artifacts.get)()
    client = await opened(at(run, f"artifacts/{row.digest}"), key)
    pieces = []
    while True:
        message = await client.receive_output(10)
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            break

    assert [piece for piece in pieces if piece] == [b"0123", b"4567", b"89"]
    await client.wait(10)
