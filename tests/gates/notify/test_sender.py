"""The threads that send: woken by commits, one channel each, apart from all work."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail as mailbox

from gates import services
from gates.errands import Errands
from gates.models import Delivery
from gates.notify import mail, sender
from gates.notify.errors import NotSent
from runs import sweep
from tests import factories
from tests.gates.later import later as time_goes_by
from tests.gates.notify import ways
from tests.gates.test_races import crowd

pytestmark = pytest.mark.django_db(transaction=True)


def test_many_that_send_at_once_send_one_message() -> None:
    for name in ("ada", "eve"):
        ways.mail_to(name)
    for number in range(3):
        factories.pending_gate(audience={"users": ["ada", "eve"]}, question=f"Release {number}?")

    with crowd(8) as together:
        together(lambda _: sweep.sweep())
    ways.send_all()

    sent = sorted((one.to[0], one.subject) for one in mailbox.outbox)
    assert sent == sorted(
        (f"{name}@example.com", f"Release {number}?")
        for name in ("ada", "eve")
        for number in range(3)
    )


@pytest.fixture
def own_sender() -> Iterator[Errands]:
    made = sender.threads.begin()
    yield made
    made.end()


def test_a_commit_wakes_the_sender_of_its_process(own_sender: Errands) -> None:
    ways.mail_to("ada")
    began = time.monotonic()
    factories.pending_gate()

    while not Delivery.objects.filter(state="sent").exists():
        assert time.monotonic() - began < 60
        time.sleep(0.01)

    # Looked for because of the commit, not because five seconds were over, however slow we are.
    assert [sent.to for sent in mailbox.outbox] == [["ada@example.com"]]


def test_a_deadline_and_an_answer_come_while_a_notifier_hangs_and_then_fails(
    own_sender: Errands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """peers.md D12, with the sender of a real process."""
    ways.mail_to("ada")
    free, begun = threading.Event(), threading.Event()

    def hang(*_: Any) -> None:
        begun.set()
        free.wait(60)
        raise NotSent("It did not work.", retryable=False)

    monkeypatch.setattr(mail, "send", hang)
    try:
        late = factories.pending_gate(expires_in_seconds=1_000, question="In time?")
        other = factories.pending_gate(question="Answered?")
        assert begun.wait(60)
        time_goes_by(late.run_id, 2_000)
        sweep.advance(late.run_id)
        services.submit(
            other.pk,
            principal=factories.ada(),
            token=None,
            digest=other.digest,
            response={"approved": True},
        )
        late.refresh_from_db()
        other.refresh_from_db()
        assert (late.status, other.status) == ("expired", "answered")
        assert ways.states(request=late) == [("gate.requested", "sending")]
    finally:
        free.set()
    own_sender.end()

    assert ("gate.requested", "failed") in ways.states(request=late)


def test_a_channel_that_hangs_keeps_no_other_waiting(
    own_sender: Errands, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways.mail_to("ada")
    ways.mail_to("eve")
    free = threading.Event()
    send = mail.send

    def hang(channel: Any, *rest: Any) -> None:
        if channel.user.username == "ada":
            free.wait(60)
        send(channel, *rest)

    monkeypatch.setattr(mail, "send", hang)
    try:
        for number in range(5):
            factories.pending_gate(audience={"users": ["ada", "eve"]}, question=f"R{number}?")
        until = time.monotonic() + 60
        while Delivery.objects.filter(state="sent").count() < 5:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert {sent.to[0] for sent in mailbox.outbox} == {"eve@example.com"}
    finally:
        free.set()
