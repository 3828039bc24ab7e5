"""Quiet hours and digests: held back, and then sent as one."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from django.core import mail as mailbox
from django.utils import timezone

from gates import services
from gates.models import Channel, Delivery, Preference
from gates.notify import kinds, mail, quiet
from gates.notify.errors import NotSent
from gates.notify.spread import spread
from tests import factories
from tests.gates.notify import ways


def channel(**facts: Any) -> Channel:
    return Channel(kind="mail", name="Mail", **facts)


def prefers(begin: str, end: str, zone: str = "UTC") -> Preference:
    return Preference(
        zone=zone, quiet_from=time.fromisoformat(begin), quiet_until=time.fromisoformat(end)
    )


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "now", "then"),
    [
        ("UTC", "2026-03-02T21:59", "2026-03-02T21:59"),
        ("UTC", "2026-03-02T22:00", "2026-03-03T07:00"),
        ("UTC", "2026-03-03T06:59", "2026-03-03T07:00"),
        ("UTC", "2026-03-03T07:00", "2026-03-03T07:00"),
        ("Asia/Tokyo", "2026-03-02T13:30", "2026-03-02T22:00"),
        ("America/New_York", "2026-03-02T13:30", "2026-03-02T13:30"),
        # The night in which the clock is put forward, and the one in which it is put back.
        ("Europe/Berlin", "2026-03-28T21:30", "2026-03-29T05:00"),
        ("Europe/Berlin", "2026-10-24T20:30", "2026-10-25T06:00"),
    ],
)
def test_a_night_is_over_when_it_is_morning_for_the_person(zone: str, now: str, then: str) -> None:
    night = prefers("22:00", "07:00", zone)

    assert quiet.first_time(channel(), night, kinds.GATE_REQUESTED, at(now)) == at(then)


def test_quiet_hours_within_a_day_and_of_no_length() -> None:
    lunch = prefers("12:00", "13:00")

    assert quiet.quiet_end(channel(), lunch, kinds.REMINDED, at("2026-03-02T12:30")) == at(
        "2026-03-02T13:00"
    )
    same = prefers("12:00", "12:00")
    assert quiet.quiet_end(channel(), same, kinds.REMINDED, at("2026-03-02T12:00")) == at(
        "2026-03-02T12:00"
    )


def test_an_end_in_the_hour_that_the_clock_leaves_out_is_never_in_the_past() -> None:
    night = prefers("01:00", "02:30", "Europe/Berlin")
    now = at("2026-03-29T00:59")

    assert quiet.quiet_end(channel(), night, kinds.REMINDED, now) >= now


@pytest.mark.parametrize(
    ("digest", "now", "then"),
    [
        ("hourly", "2026-03-02T10:17", "2026-03-02T11:00"),
        ("daily", "2026-03-02T10:17", "2026-03-03T08:00"),
        ("daily", "2026-03-02T05:17", "2026-03-02T08:00"),
        ("off", "2026-03-02T10:17", "2026-03-02T10:17"),
    ],
)
def test_a_digest_has_its_time(digest: str, now: str, then: str) -> None:
    one = channel(digest=digest)

    assert quiet.first_time(one, None, kinds.GATE_REQUESTED, at(now)) == at(then)


def test_tests_and_webhooks_know_no_night() -> None:
    night, now = prefers("00:00", "23:59"), at("2026-03-02T10:17")
    hook = Channel(kind="webhook", name="Hook", digest="daily")

    assert quiet.first_time(hook, night, kinds.GATE_REQUESTED, now) == now
    assert quiet.first_time(channel(digest="daily"), night, kinds.TEST, now) == now


def test_a_zone_that_is_none_is_utc() -> None:
    assert quiet.zone_of("Mars/Olympus").key == quiet.zone_of("../../etc/passwd").key == "UTC"


def morning() -> None:
    """What was held back is due now."""
    Delivery.objects.filter(state="pending").update(next_at=timezone.now() - timedelta(seconds=1))


@pytest.mark.django_db
def test_what_was_held_back_comes_as_one_message_with_what_is_still_open() -> None:
    ways.mail_to("ada", digest="daily")
    gates = [factories.pending_gate(question=f"Release {number}?") for number in range(4)]
    ways.send_all()
    assert not mailbox.outbox
    services.submit(
        gates[1].pk,
        principal=factories.ada(),
        token=None,
        digest=gates[1].digest,
        response={"approved": True},
    )
    ways.send_all()

    morning()
    ways.send_all()

    (sent,) = mailbox.outbox
    assert sent.subject == "3 questions wait for an answer"
    assert [f"Release {number}?" in str(sent.body) for number in range(4)] == [
        True,
        False,
        True,
        True,
    ]
    assert str(sent.body).count("http") == 1
    assert sorted(state for _, state in ways.states()) == ["sent", "sent", "sent", "withdrawn"]
    first = Delivery.objects.filter(state="sent", sent_with=None).get()
    assert Delivery.objects.filter(sent_with=first).count() == 2


@pytest.mark.django_db
def test_one_that_is_left_over_is_a_message_of_its_own() -> None:
    ways.mail_to("ada", digest="hourly")
    factories.pending_gate(question="Release 1?")
    ways.send_all()

    morning()
    ways.send_all()

    assert [sent.subject for sent in mailbox.outbox] == ["Release 1?"]


@pytest.mark.django_db
def test_a_long_digest_names_the_first_and_counts_the_others() -> None:
    ways.mail_to("ada", digest="hourly")
    for number in range(23):
        factories.pending_gate(question=f"Release {number}?")
    ways.send_all()

    morning()
    ways.send_all()

    (sent,) = mailbox.outbox
    assert sent.subject == "23 questions wait for an answer"
    assert "and 3 more" in str(sent.body)
    assert {state for _, state in ways.states()} == {"sent"}


@pytest.mark.django_db
def test_a_night_that_was_chosen_after_the_message_was_made_is_kept_too() -> None:
    one = ways.mail_to("ada")
    factories.pending_gate()
    spread()
    assert one.user is not None
    Preference.objects.create(user=one.user, quiet_from=time(0), quiet_until=time(23, 59, 59))

    ways.send_all()

    assert not mailbox.outbox
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.held, delivery.attempts) == ("pending", True, 0)


@pytest.mark.django_db
def test_a_digest_that_fails_is_tried_again_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    ways.mail_to("ada", digest="hourly")
    for number in range(3):
        factories.pending_gate(question=f"Release {number}?")
    ways.send_all()
    morning()
    send, failures = mail.send, [NotSent("later", retryable=True)]

    def once(*given: Any) -> None:
        if failures:
            raise failures.pop()
        send(*given)

    monkeypatch.setattr(mail, "send", once)
    ways.send_all()

    assert [one.subject for one in mailbox.outbox] == ["3 questions wait for an answer"]
    assert [state for _, state in ways.states()] == ["sent"] * 3
