"""The link of a message only shows, whoever opens it and however often (interactions.md I134)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core import mail as mailbox
from django.test import Client

from gates import services
from gates.models import Request, Response
from runs.models import Event
from tests import factories
from tests.gates.notify import ways
from tests.pages import client_of

pytestmark = pytest.mark.django_db


def link() -> str:
    """The path of the link in the one mail that was sent."""
    body = str(mailbox.outbox[0].body)
    return urlsplit(body.partition("Open: ")[2].split()[0]).path


def facts(gate: Request) -> tuple[Any, ...]:
    row = Request.objects.filter(pk=gate.pk).values().get()
    return row, Event.objects.filter(run=gate.run).count(), Response.objects.count()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Purpose": "prefetch;prerender", "Purpose": "prefetch"},
        {"User-Agent": "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"},
        {"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1)", "X-Purpose": "preview"},
    ],
    ids=["browser", "prefetch", "chat-preview", "bot"],
)
@pytest.mark.parametrize("who", ["ada", "nobody"])
def test_opening_the_link_changes_nothing(headers: dict[str, str], who: str) -> None:
    ways.mail_to("ada")
    gate = factories.pending_gate()
    ways.send_all()
    before = facts(gate)
    client = client_of(factories.ada()) if who == "ada" else Client()
    for method in (client.get, client.head, client.get, client.options):
        response = method(link(), headers=headers)
        assert response.status_code in ((200, 302, 405) if who == "ada" else (302, 405))

    assert facts(gate) == before


def test_what_a_link_names_beside_its_question_decides_nothing() -> None:
    ways.mail_to("ada")
    gate = factories.pending_gate()
    ways.send_all()
    before = facts(gate)

    client = client_of(factories.ada())
    for query in ("approved=true", "answer=yes&approved=true", "claim=1"):
        client.get(f"{link()}?{query}")
        assert client.get(f"{link()}answer/?{query}").status_code == 405

    assert facts(gate) == before


def test_a_forwarded_link_shows_nothing_to_who_may_not_see_it() -> None:
    ways.mail_to("ada")
    factories.pending_gate()
    ways.send_all()

    assert client_of(factories.cyd()).get(link()).status_code == 404


def test_the_link_of_a_closed_question_shows_what_became_of_it() -> None:
    ways.mail_to("ada")
    gate = factories.pending_gate()
    ways.send_all()
    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": True},
    )

    response = client_of(factories.ada()).get(link())

    assert response.status_code == 200
    assert "ada" in response.content.decode()
