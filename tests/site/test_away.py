"""What is said while the database is away."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client

from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(factories.user("ada"))
    return client


def breaking(error: type[Exception]) -> Callable[..., None]:
    def instead(*_: object, **__: object) -> None:
        raise error("server closed the connection unexpectedly: host=db.internal")

    return instead


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize("path", ["/", "/runs/", "/api/v1/requests", "/api/v1/runs"])
def test_a_database_that_is_away_is_no_fault_of_the_caller_or_ours(
    monkeypatch: pytest.MonkeyPatch, ada: Client, path: str, error: type[Exception]
) -> None:
    monkeypatch.setattr("django.db.models.query.QuerySet.__iter__", breaking(error))

    answer = ada.get(path)

    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert b"db.internal" not in answer.content
    if path.startswith("/api/"):
        assert answer.json()["error"]["code"] == "unavailable"
    else:
        assert b"The record is safe" in answer.content


def test_another_fault_is_still_ours(monkeypatch: pytest.MonkeyPatch, ada: Client) -> None:
    monkeypatch.setattr("django.db.models.query.QuerySet.__iter__", breaking(ValueError))

    answer = ada.get("/api/v1/runs")

    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "failed")
