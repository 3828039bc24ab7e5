from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.db import connections

from runs.artifacts import store
from runs.models import Run
from tests import factories
from tests.gates.calls import Api, code, program
from tests.pages import client_of
from tests.runs.artifacts.rows import named
from tests.stores import spoil, using

BIG = 2 * store.CHUNK + 7


@pytest.mark.django_db
def test_a_download_says_its_length_and_its_digest(kind: str, ben: Api) -> None:
    run = factories.make_run()
    digest = named(run, b"x" * BIG)

    answer = ben.get(f"/runs/{run.pk}/artifacts/{digest}")

    assert b"".join(answer.streaming_content) == b"x" * BIG
    told = {name: answer[name] for name in ("Content-Length", "ETag", "Accept-Ranges")}
    assert told == {"Content-Length": str(BIG), "ETag": f'"{digest}"', "Accept-Ranges": "bytes"}


@pytest.mark.django_db
def test_who_has_the_bytes_is_not_sent_them_again() -> None:
    run = factories.make_run()
    digest = named(run, b"known")
    client = client_of(factories.ben())

    answer = client.get(
        f"/runs/{run.pk}/artifacts/{digest}/", headers={"If-None-Match": f'"{digest}"'}
    )

    assert (answer.status_code, answer.content) == (304, b"")


@pytest.mark.django_db
def test_changed_and_missing_bytes_are_told_on_pages_and_to_programs(kind: str, ben: Api) -> None:
    run = factories.make_run()
    changed, gone = named(run, b"yes"), named(run, b"once")
    spoil(changed, b"no!")
    store.of().delete(store.name_of(gone))

    assert code(ben.get(f"/runs/{run.pk}/artifacts/{changed}")) == (409, "artifact-changed")
    assert code(ben.get(f"/runs/{run.pk}/artifacts/{gone}")) == (404, "artifact-missing")
    client = client_of(factories.ben())
    for digest, status in ((changed, 409), (gone, 404)):
        page = client.get(f"/runs/{run.pk}/artifacts/{digest}/")
        assert (page.status_code, digest in page.content.decode()) == (status, True)


@pytest.mark.django_db(transaction=True)
async def test_a_large_file_that_was_changed_never_arrives_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "CHUNK", 1000)
    with using("files", tmp_path):
        run, key = await sync_to_async(_run_and_key)()
        digest = await sync_to_async(named)(run, b"x" * 5_500)
        await sync_to_async(spoil)(digest, b"x" * 5_499 + b"y")

        headers, body = await _fetched(f"/api/v1/runs/{run.pk}/artifacts/{digest}", key)
        # The thread in which asynchronous tests reach the database outlives them.
        await sync_to_async(connections.close_all)()

    assert headers[b"Content-Length"] == b"5500"
    assert len(body) == 5_000


def _run_and_key() -> tuple[Run, str]:
    return factories.make_run(), program()._headers["Authorization"]


async def _fetched(path: str, key: str) -> tuple[dict[bytes, bytes], bytes]:
    """What a server would be handed, to its end."""
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(b"authorization", key.encode()), (b"host", b"localhost")],
    }
    untyped: Any = ApplicationCommunicator
    client = untyped(get_asgi_application(), scope)
    await client.send_input({"type": "http.request", "body": b""})
    start, body = await client.receive_output(20), b""
    while True:
        message = await client.receive_output(20)
        body += message.get("body", b"")
        if not message.get("more_body"):
            await client.wait(10)
            return dict(start["headers"]), body
