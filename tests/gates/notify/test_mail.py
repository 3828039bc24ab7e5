from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from django.core import mail as mailbox
from django.core.mail import EmailMultiAlternatives

from gates import services
from gates.models import Channel, Delivery
from gates.notify import kinds
from gates.notify.spread import make
from runs import record
from tests import factories, receivers
from tests.gates.notify import ways

pytestmark = pytest.mark.django_db
EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> "
    '"><a href="https://evil.example/">Approve</a> \u202eevil\r\nBcc: victim@example.com'
)


class Links(HTMLParser):
    """Tags and links of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]


def sent() -> EmailMultiAlternatives:
    (one,) = mailbox.outbox
    assert isinstance(one, EmailMultiAlternatives)
    return one


def html_of(mail: EmailMultiAlternatives) -> str:
    ((content, kind),) = [(part[0], part[1]) for part in mail.alternatives]
    assert kind == "text/html"
    return str(content)


def test_a_mail_says_what_is_asked_and_where_with_one_link_in_both_forms() -> None:
    ways.mail_to("ada")
    gate = factories.pending_gate(question="# Approve release 2.4.0?\nSecond line.")

    ways.send_all()

    mail = sent()
    link = f"http://127.0.0.1:8000/gates/{gate.pk}/"
    assert mail.subject == "Approve release 2.4.0?"
    assert f"Open: {link}" in mail.body
    assert f"Fingerprint {gate.fingerprint}" in mail.body
    assert mail.body.count("http") == 1
    assert Links(html_of(mail)).links == [link]


def test_a_hostile_question_is_text_in_the_html_and_no_header() -> None:
    ways.mail_to("ada")
    factories.pending_gate(question=EVIL.replace("\r\n", " \u2028 "))
    factories.external_request(text=EVIL)

    ways.send_all()

    for mail in mailbox.outbox:
        assert isinstance(mail, EmailMultiAlternatives)
        page = Links(html_of(mail))
        assert page.tags <= {"html", "head", "meta", "title", "body", "div", "p", "a"}
        assert len(page.links) == 1
        assert "\u202e" not in mail.subject
        raw = mail.message()
        assert raw["Bcc"] is None
        assert "\n" not in mail.subject
        assert mail.recipients() == ["ada@example.com"]
    assert len(mailbox.outbox) == 2


def test_a_subject_is_cut_whatever_the_question() -> None:
    ways.mail_to("ada")
    factories.pending_gate(question="\U0001f680" * 10_000)

    ways.send_all()

    assert len(sent().subject) <= 200
    assert len(sent().body) < 2_000


def test_all_mails_of_a_run_are_one_thread_and_a_follow_up_answers_the_question() -> None:
    for name in ("ada", "eve"):
        ways.mail_to(name)
    gate = factories.pending_gate(audience={"users": ["ada", "eve"]})
    ways.send_all()
    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": True},
    )
    ways.send_all()

    asked, answered = [mail for mail in mailbox.outbox if mail.to == ["eve@example.com"]]
    root = f"<run-{gate.run_id}@127.0.0.1>"
    own = Delivery.objects.get(channel__user__username="eve", kind="gate.requested").uid
    assert asked.extra_headers["Message-ID"] == f"<{own}@127.0.0.1>"
    assert asked.extra_headers["In-Reply-To"] == asked.extra_headers["References"] == root
    assert answered.extra_headers["In-Reply-To"] == asked.extra_headers["Message-ID"]
    assert answered.extra_headers["References"] == f"{root} {asked.extra_headers['Message-ID']}"
    assert asked.extra_headers["Auto-Submitted"] == "auto-generated"


def test_a_person_without_an_address_is_no_reason_to_try_again() -> None:
    person = factories.user("ada")
    Channel.objects.create(user=person, kind="mail", name="Mail", wants=ways.ALL)
    factories.pending_gate()

    ways.send_all()

    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == ("failed", 1)
    assert delivery.error == "The account has no e-mail address."


def test_an_address_with_a_line_break_sends_nothing() -> None:
    ways.mail_to("ada")
    Channel.objects.update(address="ada@example.com\nBcc: victim@example.com")
    factories.pending_gate()

    ways.send_all()

    assert ways.states() == [("gate.requested", "failed")]
    assert not mailbox.outbox


def test_a_test_message_goes_at_once_and_names_no_question() -> None:
    channel = ways.mail_to("ada", digest="daily")
    make([channel], kinds.TEST, "channel.test:1", record.database_now())

    ways.send_all()

    assert sent().subject == "Obversa reaches this channel"
    assert "In-Reply-To" not in sent().extra_headers


@pytest.fixture
def server(settings: Any) -> Any:
    with receivers.mail_server() as box:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", box.port
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        yield box


def test_a_mail_arrives_at_a_real_server_in_both_forms(server: receivers.Mailbox) -> None:
    ways.mail_to("ada")
    gate = factories.pending_gate(question="Größe ändern \U0001f680?")

    ways.send_all()

    (mail,) = server.got
    assert mail["Subject"] == "Größe ändern \U0001f680?"
    assert mail["To"] == "ada@example.com"
    assert mail["Message-ID"] == f"<{Delivery.objects.get().uid}@127.0.0.1>"
    plain, page = mail.get_body(["plain"]), mail.get_body(["html"])
    assert plain is not None
    assert page is not None
    assert f"/gates/{gate.pk}/" in plain.get_content()
    assert f"/gates/{gate.pk}/" in page.get_content()


@pytest.mark.parametrize(
    ("refusals", "state", "attempts"),
    [
        (["451 come back later"], "sent", 2),
        (["550 no such mailbox"], "failed", 1),
        (["451 later"] * 9, "failed", 5),
    ],
)
def test_a_server_that_may_take_it_later_is_asked_again(
    server: receivers.Mailbox, refusals: list[str], state: str, attempts: int
) -> None:
    server.refusals[:] = refusals
    ways.mail_to("ada")
    factories.pending_gate()

    ways.send_all()

    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == (state, attempts)
    assert len(server.got) == int(state == "sent")


def test_no_server_at_all_fails_the_message_and_nothing_else(settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    ways.mail_to("ada")
    gate = factories.pending_gate()

    ways.send_all()

    assert ways.states() == [("gate.requested", "failed")]
    gate.refresh_from_db()
    assert gate.status == "pending"
