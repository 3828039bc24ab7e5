"""Who says where questions go, and where they never go."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from gates import signing
from gates.models import Response, Router
from runs import approval, dag, http_router
from runs.kernel.errors import DeclarationError
from tests import factories, flows
from tests.gates.calls import person
from tests.gates.routers.service import (
    SECRET,
    Service,
    asked,
    posted,
    router,
    state,
)

pytestmark = pytest.mark.django_db


def test_an_author_gives_an_address_with_the_secret_in_the_environment(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RISK_SECRET", SECRET)
    made = http_router(service.url, name="risk-engine", secret_env="RISK_SECRET")
    job = dag(
        "flow",
        {"check": approval("check", "Ok?", audience={"routers": ["risk-engine"]}, router=made)},
    )
    run = flows.ran(job)

    posted()

    ((headers, body),) = service.got
    assert signing.verify(SECRET, body, headers, int(timezone.now().timestamp()))
    assert Response.objects.get().actor == "router:risk-engine"
    assert SECRET not in str([event.fields for event in flows.events(run)])


@pytest.mark.parametrize(
    "given",
    [
        {"url": "ftp://x", "secret_env": "S"},
        {"url": "https://", "secret_env": "S"},
        {"url": "https://user:pw@host/", "secret_env": "S"},
        {"url": "https://host/", "secret_env": "lower"},
        {"url": "https://host/", "secret_env": "S", "name": "a b"},
        {"url": None, "secret_env": "S"},
    ],
)
def test_an_address_that_is_none_is_refused_where_it_is_written(given: dict[str, Any]) -> None:
    url = given.pop("url")
    with pytest.raises(DeclarationError, match="http_router"):
        http_router(url, **given)


def test_nobody_gives_an_address_over_the_api() -> None:
    ada = person(factories.person("ada", perms=["runs.add_run"]))
    body = {
        "gateId": "g",
        "gateVersion": 1,
        "decisionText": "?",
        "responseSchema": {},
        "input": {},
        "stream": "s",
        "audience": {"routers": ["r"]},
    }

    for wrong in ({"name": "r", "url": "http://127.0.0.1/", "secretEnv": "PATH"}, "http://x/"):
        told = ada.post("/requests", {**body, "router": wrong})
        assert told.status_code == 422


def test_a_private_address_is_not_called(service: Service, settings: Any) -> None:
    router(service)
    settings.OBVERSA_NOTIFY_PRIVATE = False
    row = asked()

    posted()

    assert not service.got
    assert state(row) == ("failed", 1)
    with pytest.raises(ValidationError):
        Router(name="x", url="http://169.254.169.254/", secret=SECRET).full_clean()


def test_the_admin_sets_routers_up_and_does_not_show_their_secret(service: Service) -> None:
    made = router(service)
    root = factories.user("root")
    root.is_staff = root.is_superuser = True
    root.save()
    client = Client()
    client.force_login(root)
    path = f"/admin/gates/router/{made.pk}/change/"

    assert SECRET not in client.get(path).content.decode()
    sent = {"url": made.url, "secret": "", "timeout_seconds": 5, "enabled": "on"}
    assert client.post(path, sent).status_code == 302

    made.refresh_from_db()
    assert (made.secret, made.timeout_seconds) == (SECRET, 5)
    short = client.post(path, {**sent, "secret": "short"})
    assert "16 to 200 characters" in short.content.decode()
    assert client.get("/admin/gates/routercall/").status_code == 200
