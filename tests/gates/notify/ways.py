"""Channels for tests, and all their messages sent at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import Q
from django.utils import timezone

from gates.models import Channel, Delivery
from gates.notify import deliver, kinds
from gates.notify.spread import spread
from tests import factories

SECRET = "a secret for this receiver"
ALL = list(kinds.GROUPS)


def mail_to(name: str = "ada", **facts: Any) -> Channel:
    """A person's mail, told of everything unless said otherwise."""
    person = factories.user(name)
    if not person.email:
        User.objects.filter(pk=person.pk).update(email=f"{name}@example.com")
        person.refresh_from_db()
    return _made(user=person, kind="mail", name="Mail", **facts)


def webhook_of(team: str, url: str, **facts: Any) -> Channel:
    """A team's webhook."""
    group, _ = Group.objects.get_or_create(name=team)
    return _made(team=group, kind="webhook", name="Hook", address=url, secret=SECRET, **facts)


def service_of(person: str, address: str = "discord://1234567/abcdefgh", **facts: Any) -> Channel:
    """A person's chat service."""
    given = {"name": "Chat", "address": address, **facts}
    return _made(user=factories.user(person), kind="service", **given)


def _made(**facts: Any) -> Channel:
    return Channel.objects.create(**{"wants": ALL, "created_by": "system", **facts})


def send_all(rounds: int = 20) -> int:
    """Spread and send until nothing is due; waits between tries are skipped."""
    handled = 0
    for _ in range(rounds):
        spread()
        waiting = Delivery.objects.filter(Q(held=False) | Q(attempts__gt=0), state="pending")
        waiting.update(next_at=timezone.now() - timedelta(seconds=1))
        due = deliver.due_channels()
        if not due:
            return handled
        handled += sum(deliver.deliver(channel) for channel in due)
    raise AssertionError("there is always something due")


def states(**where: Any) -> list[tuple[str, str]]:
    """Kind and state of each delivery, oldest first."""
    found = Delivery.objects.filter(**where).order_by("pk")
    return list(found.values_list("kind", "state"))
