from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from obversa_site import health
from obversa_site.celery import app
from runs.models import Heartbeat

NOWHERE = "amqp://guest:guest@127.0.0.1:1//"

pytestmark = pytest.mark.django_db


def point_at(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change where the process sends; setting the attribute would leave what it undoes to."""
    changes: dict[str, Any] = app.conf.changes or {}
    monkeypatch.setitem(changes, "broker_write_url", address)


def heard(role: str, *, seconds_ago: int = 0) -> None:
    at = timezone.now() - timedelta(seconds=seconds_ago)
    Heartbeat.objects.update_or_create(name=role, defaults={"role": role, "at": at})


def test_a_process_is_up_whatever_it_can_reach(client: Client) -> None:
    response = client.get("/healthz")

    assert response.status_code == 200
    assert response.content == b"ok\n"


def test_a_process_is_ready_when_everything_answers(client: Client) -> None:
    heard("worker")
    heard("sweep")

    response = client.get("/readyz")

    assert response.status_code == 200
    assert response.json() == {
        "ready": True,
        "checks": {"database": "ok", "broker": "ok", "workers": "ok", "sweep": "ok"},
    }


@pytest.mark.parametrize(("role", "check"), [("worker", "workers"), ("sweep", "sweep")])
def test_nobody_is_ready_when_workers_or_the_sweep_fell_silent(
    client: Client, role: str, check: str
) -> None:
    heard("worker")
    heard("sweep")
    heard(role, seconds_ago=61)

    response = client.get("/readyz")

    assert response.status_code == 503
    silent = {name for name, said in response.json()["checks"].items() if said != "ok"}
    assert silent == {check}


@override_settings(CELERY_BROKER_URL=NOWHERE)
def test_a_broker_that_is_away_makes_a_process_not_ready(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard("worker")
    heard("sweep")
    point_at(NOWHERE, monkeypatch)

    response = client.get("/readyz")

    assert response.status_code == 503
    assert response.json()["checks"]["broker"] == "unreachable"


class Broker:
    """Counts how often somebody connects to it."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers = True

    def __call__(self, **_: Any) -> Broker:
        return self

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ensure_connection(self, **_: Any) -> None:
        self.asked += 1
        if not self.answers:
            raise ConnectionRefusedError


@override_settings(CELERY_BROKER_URL=NOWHERE)
def test_the_broker_is_not_asked_again_within_seconds_of_its_answer(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, now = Broker(), [1000.0]
    monkeypatch.setattr(app, "connection_for_write", broker)
    monkeypatch.setattr(health, "_answered", {})
    monkeypatch.setattr("obversa_site.health.time.monotonic", lambda: now[0])

    def told() -> str:
        return str(client.get("/readyz").json()["checks"]["broker"])

    assert [told(), told(), told()] == ["ok"] * 3
    assert broker.asked == 1
    now[0] += health.ANSWERED_SECONDS
    broker.answers = False
    assert [told(), told()] == ["unreachable"] * 2
    assert broker.asked == 3
