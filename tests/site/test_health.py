from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from obversa_site import draining, health
from obversa_site.operations import broker, remembered
from runs.models import Heartbeat
from tests import flows

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    health.forget()
    yield
    health.forget()


def heard(role: str, *, seconds_ago: int = 0) -> None:
    at = timezone.now() - timedelta(seconds=seconds_ago)
    Heartbeat.objects.update_or_create(name=role, defaults={"role": role, "at": at})


def told(client: Client) -> dict[str, str]:
    """What each check says, as somebody hears it who has not asked for a while."""
    health.forget()
    answer = client.get("/readyz")
    checks: dict[str, str] = answer.json()["checks"]
    assert answer.status_code == (200 if set(checks.values()) == {"ok"} else 503)
    assert answer.json()["ready"] is (answer.status_code == 200)
    return checks


def wrong(client: Client) -> dict[str, str]:
    return {name: said for name, said in told(client).items() if said != "ok"}


def test_a_process_is_up_whatever_it_can_reach(client: Client) -> None:
    response = client.get("/healthz")

    assert response.status_code == 200
    assert response.content == b"ok\n"


def test_a_process_is_ready_when_everything_answers(client: Client) -> None:
    heard("worker")
    heard("sweep")

    assert told(client) == dict.fromkeys(
        ("serving", "database", "migrations", "broker", "workers", "sweep", "artifacts"), "ok"
    )


@pytest.mark.parametrize(("role", "check"), [("worker", "workers"), ("sweep", "sweep")])
def test_nobody_is_ready_when_workers_or_the_sweep_fell_silent(
    client: Client, role: str, check: str
) -> None:
    heard("worker")
    heard("sweep")
    heard(role, seconds_ago=61)

    assert set(wrong(client)) == {check}


def test_a_database_of_an_older_version_makes_a_process_not_ready_and_a_newer_one_does_not(
    client: Client,
) -> None:
    heard("worker")
    heard("sweep")
    applied = MigrationRecorder(connection)
    applied.record_applied("runs", "9999_of_a_version_to_come")
    assert wrong(client) == {}

    newest = max(name for app, name in applied.applied_migrations() if app == "gates")
    applied.record_unapplied("gates", newest)

    assert wrong(client) == {"migrations": "1 to apply: run manage.py migrate"}


def test_a_broker_that_is_away_makes_a_process_not_ready(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard("worker")
    heard("sweep")
    monkeypatch.setattr(broker, "look", lambda: broker.Looked(answers=False))

    assert wrong(client) == {"broker": "unreachable"}


def test_a_store_that_takes_no_files_makes_a_process_not_ready(
    client: Client, settings: LazySettings, tmp_path: Path
) -> None:
    heard("worker")
    heard("sweep")
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    stores = {name: dict(facts) for name, facts in settings.STORAGES.items()}
    stores["artifacts"]["OPTIONS"] = {"location": str(blocked / "artifacts")}
    settings.STORAGES = stores

    assert wrong(client) == {"artifacts": "not writable"}
    assert blocked.read_text() == "no folder"


def test_a_process_that_was_told_to_stop_is_not_ready_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard("worker")
    heard("sweep")
    assert wrong(client) == {}
    monkeypatch.setattr(draining, "is_leaving", lambda: True)

    answer = client.get("/readyz")  # without forgetting what was found a moment ago

    assert answer.status_code == 503
    assert answer.json()["checks"]["serving"] == "stopping"
    assert client.get("/healthz").status_code == 200


def test_trouble_is_told_in_our_words(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> str | None:
        raise DatabaseError("could not connect with password hunter2 at 10.1.2.3")

    def breaks() -> str | None:
        raise RuntimeError("hunter2")

    checks = dict(health.CHECKS) | {"database": fails, "workers": fails, "sweep": breaks}
    monkeypatch.setattr(health, "CHECKS", checks)

    found = told(client)

    words = (found["database"], found["workers"], found["sweep"])
    assert words == ("unreachable", "unknown", "unknown")
    assert "hunter2" not in json.dumps(found)


def test_who_asks_often_costs_what_one_costs(client: Client) -> None:
    client.get("/readyz")

    with CaptureQueriesContext(connection) as asked:
        for _ in range(20):
            client.get("/readyz")

    # A machine that stood still for a second looks once more.
    assert len(asked) <= 10


def test_many_who_ask_at_once_wait_for_one_who_looks() -> None:
    looks: list[int] = []

    def look() -> int:
        looks.append(1)
        return len(looks)

    known = remembered.Remembered(look, 60.0)

    assert flows.at_once(8, lambda _: known.get()) == [1] * 8
    known.forget()
    assert known.get() == 2


def test_what_is_dear_is_told_late_and_what_is_cheap_never(monkeypatch: pytest.MonkeyPatch) -> None:
    now, costs = [0.0], [0.01]
    monkeypatch.setattr("obversa_site.operations.remembered.time.monotonic", lambda: now[0])

    def count() -> float:
        now[0] += costs[0]
        return now[0]

    known = remembered.Remembered(count, 0.0, share=50.0)
    first = known.get()
    assert known.get() > first
    costs[0] = 2.0
    dear = known.get()
    now[0] += 99.0
    assert known.get() == dear
    now[0] += 2.0
    assert known.get() > dear


def test_what_raises_is_asked_again() -> None:
    answers: list[Any] = [ValueError("once"), "here"]

    def find() -> Any:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    known = remembered.Remembered(find, 60.0)
    with pytest.raises(ValueError, match="once"):
        known.get()
    assert known.get() == "here"
