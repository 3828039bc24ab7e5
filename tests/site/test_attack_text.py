"""Strangers' text on every page and in every frame: it is read, it is never markup or a trap."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from gates import fragments as inbox_frames
from gates import services
from gates.models import Request
from runs import fn_job, fragments, queries, record
from runs import services as runs
from runs.artifacts import store
from runs.models import Artifact, Run
from tests import factories, flows

pytestmark = pytest.mark.django_db

EVIL: Final = (
    '"><img src=x onerror=alert(1)><script>alert(1)</script>'
    "<svg onload=alert(1)>{{ 7|add:7 }}{% now 'Y' %}</textarea></title>"
)
TRAP: Final = "safe\u202egpj.exe\u2066"
LINKS: Final = (
    "[a](javascript:alert(1)) [b](JaVaScRiPt:x) [c](data:text/html,x) ![d](http://e/x.png)"
)
TEXT: Final = f"{EVIL} {TRAP} {LINKS} <http://evil.example.com>"
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "title": TEXT,
    "properties": {
        "approved": {"type": "boolean", "title": TEXT, "description": TEXT},
        TEXT: {"type": "string", "description": TEXT, "default": TEXT},
        "choice": {"enum": [TEXT, "b"], "title": TEXT},
        "many": {"type": "array", "items": {"enum": [TEXT, "b", "c", "d", "e", "f", "g"]}},
        "more": {"enum": [TEXT, "b", "c", "d", "e", "f", "g"]},
        "json": {"type": "object", "title": TEXT, "default": {TEXT: TEXT}},
        "attributes": {"type": "string", "pattern": "^x$"},
    },
    "required": ["approved"],
}


@pytest.fixture
def root() -> User:
    return factories.user(
        "root", is_superuser=True, is_staff=True, first_name=TEXT[:150], last_name=TRAP
    )


@pytest.fixture
def reader(client: Client, root: User) -> Client:
    client.force_login(root)
    return client


@pytest.fixture
def gate(root: User) -> Request:
    return factories.external_request(
        gate_id=TEXT,
        stream=TEXT[:200],
        by=factories.person("root"),
        text=TEXT,
        schema=SCHEMA,
        audience={"users": ["root", EVIL[:140]], "groups": [TRAP]},
        input={TEXT: TEXT, "list": [TEXT, {TEXT: TEXT}], "long": TEXT * 9, "rows": [{TEXT: TEXT}]},
        presentation={
            "yesLabel": TEXT, "noLabel": TEXT, "reasons": [TEXT],
            "summary": [{"label": TEXT, "pointer": "/list", "as": "output"}],
        },
    )  # fmt: skip


@pytest.fixture
def run(root: User) -> Run:
    job = factories.release_job(label=TEXT[:250], question=TEXT, audience={"users": ["root"]})
    made = factories.make_run(
        job, params={TEXT: TEXT}, started_by=f"user:{root.pk}", workflow=TEXT[:150]
    )
    digest, size = store.keep(b"<script>alert(1)</script>")
    with record.turn(made.pk, actor=f"user:{root.pk}") as turn:
        turn.append("log", (), {"message": TEXT, "level": "info"})
    Artifact.objects.create(
        run=made, digest=digest, name=f"\u202e\r\n{TEXT[:250]}\n", media_type="text/html",
        size=size, step_path=[], seq=turn.run.last_seq, created_at=datetime.now(UTC),
    )  # fmt: skip
    return Run.objects.get(pk=made.pk)


def assert_harmless(html: str, where: str) -> None:
    lower = html.lower()
    for bad in ("<img src=x", "<script>", "<svg onload", "</textarea></title>", ">14<"):
        assert bad not in lower, (where, bad)
    for link in re.findall(r"""(?:href|src|action)=["']?([^"'\s>]+)""", lower):
        assert not re.match(r"(javascript|data|vbscript):", link), (where, link)
        assert "evil.example.com" not in link or link.startswith("http://evil"), (where, link)
    # Values that go back to the server, or to a clipboard, stay what they are.
    shown = re.sub(r"(?s)<textarea.*?</textarea>|<[^>]*>", "<>", lower)
    assert not re.search("[\u202e\u2066]", shown), (where, shown)


def test_the_pages_of_a_question(reader: Client, gate: Request, run: Run) -> None:
    paths = ["/", "/?tab=asked", gate.get_absolute_url(), "/runs/", run.get_absolute_url()]
    for path in [*paths, gate.run.get_absolute_url(), "/teams/", "/settings/"]:
        assert_harmless(reader.get(path).content.decode(), path)

    services.claim(gate.pk, principal=factories.person("root"))
    wrong = {"f-approved": "true", "f-attributes": TEXT, "f-json": TEXT, "digest": gate.digest}
    for header in ({}, {"HX-Request": "true"}):
        answer = reader.post(f"/gates/{gate.pk}/answer/", wrong, headers=header)
        assert answer.status_code == 422
        assert_harmless(answer.content.decode(), "wrong answer")
    services.force_release(gate.pk, principal=factories.person("root"), reason=TEXT)
    right = {"f-approved": "false", "f-more": TEXT, "f-choice": TEXT, "digest": gate.digest}
    answer = reader.post(f"/gates/{gate.pk}/answer/", right, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    for path in (gate.get_absolute_url(), "/?tab=history"):
        assert_harmless(reader.get(path).content.decode(), path)


def test_the_pages_of_a_workflow(reader: Client) -> None:
    name = flows.offer(
        fn_job("f", str), name=TEXT[:150].replace("/", ""), params=SCHEMA, title=TEXT[:200]
    )
    for path in ("/workflows/", reverse("runs:start", args=[name])):
        page = reader.get(path)
        assert page.status_code == 200
        assert_harmless(page.content.decode(), path)


def test_the_frames_of_the_sockets(root: User, gate: Request, run: Run) -> None:
    news = inbox_frames.InboxNews(root.pk)
    news.frame()
    services.claim(gate.pk, principal=factories.person("root"))
    runs.cancel_run(run.pk, actor=f"user:{root.pk}", reason=TEXT)
    run.refresh_from_db()

    assert_harmless(news.frame(), "inbox frame")
    assert_harmless(fragments.frame(run, queries.last_events(run), {}), "run frame")


def test_the_admin(reader: Client, gate: Request, run: Run) -> None:
    for path in ("/admin/gates/request/", f"/admin/gates/request/{gate.pk}/change/"):
        body = reader.get(path).content.decode().lower()
        assert "<img src=x" not in body
        assert "<svg onload" not in body
    for path in ("/admin/runs/run/", f"/admin/runs/run/{run.pk}/change/"):
        assert "<img src=x" not in reader.get(path).content.decode().lower()


def test_a_file_that_a_browser_could_run_is_a_download(reader: Client, run: Run) -> None:
    row = run.artifacts.get()
    path = f"/runs/{run.pk}/artifacts/{row.digest}"
    for answer in (reader.get(f"{path}/"), reader.get(f"/api/v1{path}")):
        answer.getvalue()
        assert answer.headers["Content-Disposition"].startswith('attachment; filename="<U+202E> ')
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "no-store" in answer.headers["Cache-Control"]


def test_the_api_says_the_very_text_and_never_as_a_page(reader: Client, gate: Request) -> None:
    answer = reader.get(f"/api/v1/requests/{gate.pk}")

    assert answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.content)["decisionText"] == TEXT
    missing = reader.get("/api/v1/runs", {"cursor": EVIL[:100]})
    assert missing.headers["Content-Type"] == "application/json"
