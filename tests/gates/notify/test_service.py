from __future__ import annotations

import logging
from typing import Any

import pytest
import requests

from gates.models import Delivery
from gates.notify import service
from gates.notify.message import Message
from tests import factories
from tests.gates.notify import ways

LINK = "https://obversa.example.com/gates/3f2b8c1a-6d5e-4f70-8a9b-0c1d2e3f4a5b/"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
LONG = Message(
    title=FAMILY * 20_000,
    lines=("Release, approve, run 7f3a12bc", "Asked by ada"),
    url=LINK,
    fingerprint="3a32b8f3",
)


class Answer:
    """What a chat service says."""

    def __init__(self, status: int, text: str = "") -> None:
        self.status_code, self.text, self.content = status, text, text.encode()
        self.headers: dict[str, str] = {}
        self.ok = status < 400


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What would have gone to a service; the last one's answer is 204 unless a test says more."""
    kept: list[dict[str, Any]] = []

    def post(*_: Any, **given: Any) -> Answer:
        kept.append(given)
        return Answer(204)

    def session(_: Any, *__: Any, **given: Any) -> Answer:
        return post(**given)

    monkeypatch.setattr(requests, "post", post)
    monkeypatch.setattr(requests.Session, "request", session)
    return kept


@pytest.mark.parametrize("limit", [160, 500, 1000, 2000, 35_000])
def test_a_question_of_a_hundred_kilobytes_is_cut_and_its_link_is_not(limit: int) -> None:
    for title_limit in (0, 60, 250):
        title, body = service.fitted(LONG, title_limit, limit)

        assert body.endswith(f"Open: {LINK}")
        merged = len(title) + 2 if title_limit == 0 else 0
        assert len(body) + merged <= limit
        assert len(title) <= (title_limit or limit)


def test_a_text_that_is_too_short_even_for_the_question_keeps_the_link_alone() -> None:
    assert LONG.text(80) == f"Open: {LINK}"


def test_a_strangers_question_calls_no_room() -> None:
    loud = Message(title="@everyone <!channel> @Here ada@example.com", lines=(), url=LINK)

    title, _ = service.fitted(loud, 250, 2000)

    assert "@everyone" not in title
    assert "<!channel>" not in title
    assert "@Here" not in title
    assert "ada@example.com" in title


@pytest.mark.django_db
def test_a_question_reaches_a_chat_with_its_title_and_its_link(
    posted: list[dict[str, Any]],
) -> None:
    ways.service_of("ada")
    gate = factories.pending_gate(question="Approve release 2.4.0?")

    ways.send_all()

    assert ways.states() == [("gate.requested", "sent")]
    (sent,) = posted
    assert "Approve release 2.4.0?" in str(sent)
    assert f"/gates/{gate.pk}/" in str(sent)
    assert sent["allow_redirects"] is False
    assert sent["timeout"] == (service.SECONDS, service.SECONDS)


@pytest.mark.django_db
def test_a_refusal_is_logged_without_the_address(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "S3cr3tW3bh00kT0k3n"
    ways.service_of("ada", f"discord://1234567/{secret}")

    def refuse(*_: Any, **__: Any) -> Answer:
        raise requests.ConnectionError(f"Max retries exceeded with url: /api/webhooks/1/{secret}")

    monkeypatch.setattr(requests, "post", refuse)
    monkeypatch.setattr(requests.Session, "request", refuse)
    factories.pending_gate()
    with caplog.at_level(logging.DEBUG, "gates"):
        ways.send_all()

    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == ("failed", 5)
    assert delivery.error.startswith("The service did not take it")
    assert secret not in delivery.error
    assert not [
        r for r in caplog.records if r.name.startswith("gates") and secret in r.getMessage()
    ]
