"""Who is told: rights are looked at when the message is made, and once more when it is sent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.core import mail as mailbox
from django.utils import timezone

from gates import services
from gates.answers import deputies, handing
from gates.models import Delivery
from gates.notify import recipients
from gates.notify.spread import spread
from runs import services as runs_services
from tests import factories
from tests.gates.notify import ways

pytestmark = pytest.mark.django_db


def told() -> list[str]:
    return sorted(mail.to[0].partition("@")[0] for mail in mailbox.outbox)


def test_whoever_may_answer_is_told_and_nobody_else() -> None:
    factories.ada(), factories.ben(), factories.cyd()
    for name in ("ada", "ben", "cyd"):
        ways.mail_to(name)
    factories.pending_gate()

    ways.send_all()

    assert told() == ["ada"]


def test_a_question_for_everyone_is_told_to_everyone_with_a_channel() -> None:
    for name in ("ada", "cyd"):
        ways.mail_to(name)
    ways.webhook_of("Release", "https://example.com/")
    factories.make_run(factories.release_job(audience=None), audience=None)
    run_for_all = factories.external_request(audience={})
    assert run_for_all.audience.tokens.get().token == "everyone"

    spread()

    # A team is told what is asked of it by name.
    channels = Delivery.objects.filter(request=run_for_all).values_list("channel__user__username")
    assert sorted(channels) == [("ada",), ("cyd",)]


def test_members_of_a_group_and_holders_of_a_permission_are_told() -> None:
    factories.person("mia", groups=["Release"])
    factories.operator()
    for name in ("mia", "oda", "cyd"):
        ways.mail_to(name)
    audience = {"groups": ["Release"], "permissions": ["gates.change_request"]}
    factories.pending_gate(audience=audience)

    ways.send_all()

    assert told() == ["mia", "oda"]


def test_who_lost_the_right_since_gets_nothing_more() -> None:
    person = factories.person("mia", groups=["Release"]).user
    assert person is not None
    ways.mail_to("mia")
    factories.pending_gate(audience={"groups": ["Release"]})
    spread()
    person.groups.clear()

    ways.send_all()

    assert not mailbox.outbox
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.error) == (
        "withdrawn",
        "The question is not theirs to answer.",
    )


def test_a_closed_account_gets_nothing_more() -> None:
    ways.mail_to("ada")
    factories.pending_gate()
    spread()
    User.objects.filter(username="ada").update(is_active=False)

    ways.send_all()

    assert not mailbox.outbox
    assert ways.states() == [("gate.requested", "withdrawn")]


def test_a_team_that_is_no_longer_asked_gets_nothing_more() -> None:
    ways.webhook_of("Release", "https://example.com/")
    factories.pending_gate(audience={"groups": ["Release"]})
    spread()
    Group.objects.filter(name="Release").update(name="Former release team")

    ways.send_all()

    assert ways.states() == [("gate.requested", "withdrawn")]


def test_who_asked_hears_the_answer_and_who_answered_their_own_does_not() -> None:
    ways.mail_to("ada")
    gate = factories.external_request(by=factories.ada(), audience={"users": ["eve"]})
    factories.person("eve")
    ways.send_all()
    assert not mailbox.outbox

    services.submit(
        gate.pk,
        principal=factories.person("eve"),
        token=None,
        digest=gate.digest,
        response={"approved": False},
    )
    ways.send_all()

    assert told() == ["ada"]
    assert "Refused by eve" in str(mailbox.outbox[0].body)


def test_who_started_a_run_hears_that_it_ended_and_onlookers_do_not() -> None:
    starter = factories.person("sam")
    for name in ("sam", "ada"):
        ways.mail_to(name, wants=["failed"])
    run = factories.make_run(started_by=starter.actor, audience={"users": ["ada", "sam"]})
    runs_services.cancel_run(run.pk, actor=starter.actor)

    ways.send_all()

    assert told() == ["sam"]
    assert mailbox.outbox[0].subject == "Release cancelled"


def test_the_owner_of_a_key_hears_of_what_it_started() -> None:
    owner = factories.user("sam")
    key = factories.key("sams-bot", user=owner)

    assert recipients.person_behind(f"{key.actor}/a") == owner.pk
    assert recipients.person_behind(f"user:{owner.pk}") == owner.pk
    assert recipients.person_behind("key:unknown") is None
    assert recipients.person_behind("system") is None


def test_a_removed_channel_gets_nothing_more() -> None:
    channel = ways.mail_to("ada")
    factories.pending_gate()
    spread()
    channel.removed_at = channel.created_at
    channel.save(update_fields=["removed_at"])

    ways.send_all()

    assert not mailbox.outbox


def test_a_channel_hears_only_the_kinds_that_were_chosen() -> None:
    ways.mail_to("ada", wants=["reminded"])
    factories.pending_gate()

    ways.send_all()

    assert not Delivery.objects.exists()


def test_who_is_given_a_question_hears_of_it_and_nobody_else_does() -> None:
    for name in ("ada", "eve"):
        ways.mail_to(name)
    gate = factories.pending_gate(audience={"users": ["ada", "eve"]})
    ways.send_all()
    mailbox.outbox.clear()

    handing.assign(gate.pk, principal=factories.ada(), to="eve")
    ways.send_all()

    assert told() == ["eve"]
    assert mailbox.outbox[0].subject == "Given to you: Approve release abc123?"


def test_a_deputy_is_told_in_the_place_of_who_is_away() -> None:
    person, deputy = factories.user("ada"), factories.user("dan")
    ways.mail_to("dan")
    deputies.name_deputy(person, deputy.username, timezone.now() + timedelta(days=1))
    factories.pending_gate()

    ways.send_all()

    assert told() == ["dan"]


def test_what_an_approval_of_several_still_waits_for_is_not_told_as_answered() -> None:
    for name in ("ada", "eve"):
        ways.mail_to(name)
    gate = factories.pending_gate(audience={"users": ["ada", "eve"]}, needed=2)
    ways.send_all()
    mailbox.outbox.clear()

    services.submit(
        gate.pk,
        principal=factories.ada(),
        token=None,
        digest=gate.digest,
        response={"approved": True},
    )
    ways.send_all()

    assert not mailbox.outbox
