from __future__ import annotations

import contextlib
import logging
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail as mailbox
from django.db import OperationalError
from django.utils import timezone

from gates import services
from gates.models import Delivery, Notice, Request
from gates.notify import deliver, mail, message, sender
from gates.notify.errors import NotSent
from gates.notify.spread import spread
from runs import record, sweep
from runs import services as runs_services
from tests import factories
from tests.gates.notify import ways

YES = {"approved": True}
pytestmark = pytest.mark.django_db


def answer(row: Request, who: Any, response: Any = YES) -> None:
    services.submit(row.pk, principal=who, token=None, digest=row.digest, response=response)


def later(seconds: float) -> None:
    """Let every lease and wait of the deliveries be so much further on."""
    for delivery in Delivery.objects.all():
        past = timedelta(seconds=seconds)
        delivery.next_at -= past
        if delivery.lease_until is not None:
            delivery.lease_until -= past
        delivery.save(update_fields=["next_at", "lease_until"])


class Stopped(BaseException):
    """The process ends here."""


def test_a_question_is_noted_in_its_own_transaction_and_sent_once() -> None:
    ways.mail_to("ada")
    gate = factories.pending_gate()
    assert Notice.objects.filter(run=gate.run, kind="callback-requested").count() == 1
    assert not mailbox.outbox

    ways.send_all()
    ways.send_all()

    assert [sent.to for sent in mailbox.outbox] == [["ada@example.com"]]
    assert ways.states() == [("gate.requested", "sent")]
    assert not Notice.objects.exists()


def test_a_notice_that_is_spread_twice_makes_one_delivery() -> None:
    ways.mail_to("ada")
    gate = factories.pending_gate()
    notice = Notice.objects.get(run=gate.run, kind="callback-requested")
    ways.send_all()

    # The process died after the deliveries were there and before the notice was gone.
    notice.save(force_insert=True)
    ways.send_all()

    assert len(mailbox.outbox) == 1


def test_the_sweep_sends_what_no_message_told_of() -> None:
    ways.mail_to("ada")
    factories.pending_gate()

    sweep.sweep()

    assert len(mailbox.outbox) == 1


def test_a_process_that_ends_before_the_first_byte_leaves_the_message_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways.mail_to("ada")
    factories.pending_gate()
    with monkeypatch.context() as patch:
        patch.setattr(message, "message_for", _stop)
        with pytest.raises(Stopped):
            ways.send_all()
    assert ways.states() == [("gate.requested", "sending")]
    assert deliver.due_channels() == []  # its sender may be slow and alive

    later(200)
    ways.send_all()

    assert len(mailbox.outbox) == 1
    assert ways.states() == [("gate.requested", "sent")]


def test_a_mail_that_may_have_gone_out_is_not_sent_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ways.mail_to("ada")
    factories.pending_gate()
    send = mail.send

    def send_and_stop(*given: Any) -> None:
        send(*given)
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(mail, "send", send_and_stop)
        with pytest.raises(Stopped):
            ways.send_all()
    later(200)
    ways.send_all()

    assert len(mailbox.outbox) == 1
    delivery = Delivery.objects.get()
    assert delivery.state == "failed"
    assert "may have arrived" in delivery.error


def test_who_was_too_slow_changes_nothing_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    ways.mail_to("ada")
    factories.pending_gate()
    spread()
    slow = deliver._claim(deliver.due_channels()[0])
    assert slow is not None
    later(200)
    ways.send_all()

    deliver._failed(slow, NotSent("too late", retryable=False))

    assert ways.states() == [("gate.requested", "sent")]


def test_a_failure_that_may_pass_is_tried_again_at_growing_distances_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    channel = ways.mail_to("ada")
    factories.pending_gate()
    tries: list[int] = []
    waits: list[float] = []

    def fail(*_: Any) -> None:
        tries.append(1)
        raise NotSent("The mail server answered 421.", retryable=True)

    monkeypatch.setattr(mail, "send", fail)
    spread()
    now = record.database_now()
    monkeypatch.setattr(record, "database_now", lambda: now)
    for _ in range(4):
        deliver.deliver(channel.pk)
        row = Delivery.objects.get()
        waits.append((row.next_at - now).total_seconds())
        assert row.state == "pending"
        later(waits[-1] + 1)
    deliver.deliver(channel.pk)

    # 0.5, 1, 2 and 4 seconds, each up to a quarter shorter; the fifth failure is the last.
    for wait, longest in zip(waits, (0.5, 1, 2, 4), strict=True):
        assert longest * 0.75 <= wait <= longest
    row = Delivery.objects.get()
    assert (row.state, row.attempts, row.error) == ("failed", 5, "The mail server answered 421.")
    assert len(tries) == 5
    assert deliver.due_channels() == []


def test_a_failure_that_will_not_pass_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ways.mail_to("ada")
    factories.pending_gate()
    monkeypatch.setattr(mail, "send", _raise(NotSent("No such address.", retryable=False)))

    ways.send_all()

    assert ways.states() == [("gate.requested", "failed")]
    assert Delivery.objects.get().attempts == 1


def test_later_messages_wait_for_the_one_that_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel = ways.mail_to("ada")
    send = mail.send
    factories.pending_gate(question="First?")
    monkeypatch.setattr(mail, "send", _raise(NotSent("later", retryable=True)))
    spread()
    now = record.database_now()
    with monkeypatch.context() as patch:
        patch.setattr(record, "database_now", lambda: now)
        deliver.deliver(channel.pk)
    later(-600)  # its next try is far off, however slow this test is
    factories.pending_gate(question="Second?")
    monkeypatch.setattr(mail, "send", send)
    spread()
    assert deliver.deliver(channel.pk) == 0

    ways.send_all()

    assert [sent.subject for sent in mailbox.outbox] == ["First?", "Second?"]


def test_a_message_that_cannot_be_written_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ways.mail_to("ada")
    factories.pending_gate(question="First?")
    written = message.message_for

    def broken(delivery: Delivery, zone: Any) -> Any:
        assert delivery.request is not None
        if delivery.request.decision_text == "First?":
            raise RuntimeError("a bug of ours")
        return written(delivery, zone)

    monkeypatch.setattr(message, "message_for", broken)
    factories.pending_gate(question="Second?")
    with caplog.at_level(logging.CRITICAL):
        ways.send_all()

    assert sorted(ways.states()) == [("gate.requested", "failed"), ("gate.requested", "sent")]


def test_what_was_not_sent_when_somebody_answered_is_taken_back() -> None:
    ways.mail_to("ada")
    gate = factories.pending_gate()
    spread()
    answer(gate, factories.ada())

    ways.send_all()

    assert ways.states(request=gate) == [("gate.requested", "withdrawn")]
    assert not [sent for sent in mailbox.outbox if gate.decision_text in sent.subject]


def test_a_claimed_delivery_of_an_answered_question_is_not_sent_either() -> None:
    ways.mail_to("ada")
    gate = factories.pending_gate()
    spread()
    answer(gate, factories.ada())
    # The notice of the answer has not been spread yet.
    deliver.deliver(deliver.due_channels()[0])

    assert ways.states(request=gate) == [("gate.requested", "withdrawn")]


def test_who_was_told_hears_who_answered_and_who_answered_does_not() -> None:
    for name in ("ada", "eve"):
        ways.mail_to(name)
    gate = factories.pending_gate(audience={"users": ["ada", "eve"]})
    ways.send_all()
    mailbox.outbox.clear()

    answer(gate, factories.ada())
    ways.send_all()

    told = [m for m in mailbox.outbox if m.subject.startswith("Answered: ")]
    assert [sent.to for sent in told] == [["eve@example.com"]]
    assert "Approved by ada" in str(told[0].body)


def test_a_person_who_does_not_want_it_hears_nothing_more() -> None:
    ways.mail_to("ada")
    ways.mail_to("eve", wants=["asked"])
    gate = factories.pending_gate(audience={"users": ["ada", "eve"]})
    ways.send_all()
    mailbox.outbox.clear()

    answer(gate, factories.ada())
    ways.send_all()

    assert not mailbox.outbox


def test_a_cancelled_run_closes_its_questions_for_whoever_was_told() -> None:
    ways.mail_to("ada")
    run = factories.make_run()
    ways.send_all()

    runs_services.cancel_run(run.pk, actor="user:0")
    ways.send_all()

    assert ways.states() == [("gate.requested", "sent"), ("request.closed", "sent")]


def test_a_notifier_that_is_slow_and_then_fails_keeps_neither_question_nor_deadline_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """peers.md D12: the clock of a question starts when it is posted."""
    ways.mail_to("ada")

    def fail_late(*_: Any) -> None:
        threading.Event().wait(0.02)
        raise NotSent("It did not work.", retryable=True)

    monkeypatch.setattr(mail, "send", fail_late)
    before = timezone.now()
    gate = factories.pending_gate(expires_in_seconds=600)
    gate.refresh_from_db()
    assert gate.expires_at is not None
    assert (gate.expires_at - gate.created_at).total_seconds() == 600
    assert gate.created_at - before < timedelta(seconds=60)

    ways.send_all()

    gate.refresh_from_db()
    assert gate.status == "pending"
    assert (gate.expires_at - gate.created_at).total_seconds() == 600
    answer(gate, factories.ada())
    assert ways.states(request=gate)[0] == ("gate.requested", "failed")


def test_nothing_is_kept_where_nobody_wants_to_be_told() -> None:
    factories.pending_gate()

    ways.send_all()

    assert not Notice.objects.exists()
    assert not Delivery.objects.exists()


def test_a_message_for_the_sender_that_comes_twice_sends_once() -> None:
    ways.mail_to("ada")
    factories.pending_gate()

    for _ in range(2):
        sender.sweep()

    assert len(mailbox.outbox) == 1


def test_what_was_taken_is_not_forgotten_when_the_database_goes_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways.mail_to("ada")
    factories.pending_gate()
    settle, troubles = deliver._settle, [OperationalError("away"), OperationalError("away")]

    def shaky(*given: Any) -> None:
        if troubles:
            raise troubles.pop()
        settle(*given)

    monkeypatch.setattr(deliver, "_settle", shaky)
    monkeypatch.setattr(deliver, "steadily", lambda do, **_: _stubbornly(do))
    ways.send_all()

    assert ways.states() == [("gate.requested", "sent")]
    assert len(mailbox.outbox) == 1


def _stubbornly(do: Any) -> Any:
    """As `steadily` does, inside the transaction that a test is."""
    for _ in range(5):
        with contextlib.suppress(OperationalError):
            return do()
    raise AssertionError("never settled")


def _stop(*_: Any) -> None:
    raise Stopped


def _raise(error: Exception) -> Any:
    def fail(*_: Any) -> None:
        raise error

    return fail
