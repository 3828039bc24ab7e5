"""The language a browser asks for changes nothing that programs read (interactions.md A11)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from gates import services
from runs import fn_job
from runs.models import Run
from tests import factories, flows
from tests.acting import FIRST, Downstream, calling, publish_post

pytestmark = pytest.mark.django_db

LANGUAGES = ("de-DE,de;q=0.9", "ar", "zh-hans, *;q=0.1", "no;such=thing", "")


@pytest.fixture
def paths() -> list[str]:
    """Every reading of the API, and readings that are refused, on a little of everything."""
    publish_post(Downstream(), cost=1_234_567, audience=factories.FOR_ADA)
    acting = flows.ran(calling(FIRST), conversation="c1")
    ended = flows.ran(fn_job("f", lambda ctx: "1.234,5"), name="quick")
    done = factories.external_request(input={"n": 1234567.5, "on": "2026-01-02"})
    services.submit(
        done.pk,
        principal=factories.ada(),
        token=None,
        digest=done.digest,
        response={"approved": True},
    )
    # A receipt that is there tells when it was asked for, and is signed with that.
    gates = [done.pk, factories.pending_gate().pk, acting.requests.get().pk]
    runs = Run.objects.values_list("pk", flat=True)
    return [
        "/requests", "/requests?status=answered", "/requests?limit=x", "/requests?cursor=x",
        "/runs", "/runs?status=none", "/workflows", "/grants", "/receipt-key", "/nothing",
        *(f"/requests/{pk}{part}" for pk in gates for part in ("", "/history")),
        *(f"/requests/{pk}/receipt" for pk in gates[1:]),
        *(f"/runs/{pk}{part}" for pk in runs for part in ("", "/events", "/events?after=x")),
        f"/runs/{ended.pk}/stream",
    ]  # fmt: skip


def told(client: Client, method: str, path: str, language: str | None, **body: Any) -> Any:
    headers = {} if language is None else {"Accept-Language": language}
    extra = {"data": body, "content_type": "application/json"} if method == "post" else {}
    response: Any = getattr(client, method)(f"/api/v1{path}", headers=headers, **extra)
    streaming = response.streaming
    content = b"".join(response.streaming_content) if streaming else response.content
    return response.status_code, response.headers["Content-Type"], content


def test_every_language_reads_the_same(paths: list[str]) -> None:
    client = Client()
    client.force_login(factories.user("root", is_superuser=True))
    plain = {path: told(client, "get", path, None) for path in paths}

    assert {status for status, *_ in plain.values()} == {200, 404, 409, 422}
    for language in LANGUAGES:
        for path in paths:
            assert told(client, "get", path, language) == plain[path], (language, path)


def test_every_language_is_refused_in_the_same_words() -> None:
    gate = factories.pending_gate()
    client = Client()
    client.force_login(factories.user("ada"))
    posts: list[tuple[str, dict[str, Any]]] = [
        (f"/requests/{gate.pk}/submit", {"digest": gate.digest, "response": {"approved": 1.5}}),
        (f"/requests/{gate.pk}/submit", {"digest": "0" * 64, "response": {"approved": True}}),
        (f"/requests/{gate.pk}/withdraw", {"reason": ""}),
        (f"/requests/{gate.pk}/release", {"claimToken": "no"}),
        ("/runs", {"workflow": ""}),
    ]

    for path, body in posts:
        plain = told(client, "post", path, None, **body)
        assert plain[0] >= 400
        for language in LANGUAGES:
            assert told(client, "post", path, language, **body) == plain, (language, path)
