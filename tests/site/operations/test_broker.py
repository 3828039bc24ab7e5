"""How many messages wait at a broker: real ones, one that is away, and one that says nothing."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings

from obversa_site.celery import app
from obversa_site.operations import broker
from tests.needs import need

NOWHERE = "amqp://guest:guest@127.0.0.1:1//"


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    broker.forget()
    yield
    broker.forget()


@pytest.fixture
def point_at(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Any:
    assert app.conf.task_default_queue  # once it is read, its changes stay where they are
    changes: Any = app.conf.changes

    def point(address: str, **options: Any) -> None:
        settings.CELERY_BROKER_URL = address
        for name in ("broker_url", "broker_read_url", "broker_write_url"):
            monkeypatch.setitem(changes, name, address)
        monkeypatch.setitem(changes, "broker_transport_options", options)

    return point


def test_without_a_broker_there_is_nothing_to_say() -> None:
    assert broker.look() is None


@pytest.mark.redis
def test_redis_says_how_many_messages_wait_in_each_queue(
    point_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import redis

    prefix = f"obversa-test-depth-{time.monotonic_ns()}-"
    point_at(need("redis"), global_keyprefix=prefix)
    with redis.Redis.from_url(need("redis")) as client:
        client.rpush(f"{prefix}steps", "a", "b", "c")
        try:
            assert broker.look() == broker.Looked(True, {"control": 0, "steps": 3, "notify": 0})
            client.rpush(f"{prefix}steps", "d")
            found = broker.look()
            assert found is not None
            assert found.depths["steps"] == 3  # known for some seconds
            broker.forget()
            found = broker.look()
            assert found is not None
            assert found.depths["steps"] == 4
        finally:
            client.delete(f"{prefix}steps")


@pytest.mark.rabbitmq
def test_rabbitmq_says_it_and_a_queue_nobody_declared_is_absent(
    point_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kombu import Connection, Queue

    name = f"obversa-test-depth-{time.monotonic_ns()}"
    point_at(need("rabbitmq"))
    monkeypatch.setattr(broker, "QUEUES", (f"{name}-none", name))
    with Connection(need("rabbitmq")) as connection:
        queue = Queue(name, channel=connection.channel(), auto_delete=True, expires=60)
        queue.declare()
        producer = connection.Producer(serializer="json")
        for _ in range(2):
            producer.publish({}, routing_key=name)
        try:
            found = broker.look()
            end = time.monotonic() + 20
            while (found is None or found.depths.get(name) != 2) and time.monotonic() < end:
                broker.forget()
                found = broker.look()
            assert found == broker.Looked(True, {name: 2})
        finally:
            queue.delete()


def test_a_broker_that_is_away_is_known_to_be_and_named_without_its_password(
    point_at: Any, caplog: pytest.LogCaptureFixture
) -> None:
    point_at("amqp://guest:hunter2@127.0.0.1:1//")

    assert broker.look() == broker.Looked(answers=False)
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_broker_that_takes_calls_and_answers_none_keeps_nobody(
    point_at: Any, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setattr(broker, "SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        point_at(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/")

        assert broker.look() == broker.Looked(answers=False)
