"""What people do with channels: add, change, test, remove, and send a failed message again."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterable
from datetime import time
from typing import Final
from uuid import uuid4

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.db.models import Q

from gates import signing
from gates.models import Channel, Delivery, Preference
from gates.notify import kinds, sender, service
from gates.notify.addresses import AddressRefused, is_public, read_webhook
from gates.notify.spread import make
from runs import record
from runs.kernel.events import EventKind

logger = logging.getLogger(__name__)

MOST: Final = 10
_email: Final = EmailValidator()


class ChannelRefused(ValueError):
    """A channel cannot be like this; `field` is where a form says so."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


def add(
    kind: str,
    *,
    actor: str,
    user: User | None = None,
    team: Group | None = None,
    name: str,
    address: str = "",
    wants: Iterable[str] = kinds.USUAL,
    digest: str = Channel.Digest.OFF,
) -> Channel:
    """Add a channel of a person or of a team; raises ChannelRefused.

    A person's mail goes to the address of the account and to no other, so that nobody has
    messages sent to strangers.
    """
    own = Q(user=user) if team is None else Q(team=team)
    if Channel.objects.filter(own, removed_at=None).count() >= MOST:
        raise ChannelRefused("", f"There are {MOST} channels already. Remove one first.")
    address = address.strip()
    if kind == Channel.Kind.MAIL and user is not None:
        address = ""
        if not user.email:
            raise ChannelRefused(
                "", "Your account has no e-mail address; an administrator adds it."
            )
    else:
        check_address(kind, address)
    is_hook = kind == Channel.Kind.WEBHOOK
    facts = {
        "name": name,
        "address": address,
        "secret": signing.new_secret() if is_hook else "",
        "wants": sorted(set(wants) & set(kinds.GROUPS)),
        "digest": Channel.Digest.OFF if is_hook else digest,
        "created_by": actor,
    }
    if kind != Channel.Kind.MAIL or user is None:
        return Channel.objects.create(user=user, team=team, kind=kind, **facts)
    made, is_new = Channel.objects.get_or_create(
        user=user, kind=kind, removed_at=None, defaults=facts
    )
    if not is_new:
        raise ChannelRefused("", "Your mail is a channel already.")
    return made


def check_address(kind: str, address: str) -> None:
    """Raise ChannelRefused for an address that this kind of channel may not have."""
    try:
        match kind:
            case Channel.Kind.MAIL:
                _email(address)
            case Channel.Kind.SERVICE:
                service.read_service(address)
            case _:
                _check_webhook(address)
    except AddressRefused as refusal:
        raise ChannelRefused("address", str(refusal)) from None
    except ValidationError:
        raise ChannelRefused("address", "This is no e-mail address.") from None


def _check_webhook(address: str) -> None:
    """Refuse a private number at once; what a name leads to is looked at whenever it is used."""
    from django.conf import settings

    host = read_webhook(address).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        is_private = host == "localhost" or host.endswith(".localhost")
    else:
        is_private = not is_public(host)
    if is_private and not settings.OBVERSA_NOTIFY_PRIVATE:
        raise AddressRefused("The address leads into a private network.")


def change(channel: Channel, *, name: str, wants: Iterable[str], digest: str) -> None:
    """Say anew what the channel is told, and when."""
    channel.name = name
    channel.wants = sorted(set(wants) & set(kinds.GROUPS))
    channel.digest = Channel.Digest.OFF if channel.kind == Channel.Kind.WEBHOOK else digest
    channel.save(update_fields=["name", "wants", "digest"])


def remove(channel: Channel) -> None:
    """End the channel; its log stays, its address and secret do not."""
    now = record.database_now()
    Channel.objects.filter(pk=channel.pk, removed_at=None).update(
        removed_at=now, address="", secret=""
    )
    Delivery.objects.filter(channel=channel, state=Delivery.State.PENDING).update(
        state=Delivery.State.WITHDRAWN, done_at=now, error="The channel was removed."
    )


def renew_secret(channel: Channel) -> str:
    """A new secret for a webhook, to be shown this once; the old one signs nothing more."""
    secret = signing.new_secret()
    Channel.objects.filter(pk=channel.pk, kind=Channel.Kind.WEBHOOK).update(secret=secret)
    return secret


def test(channel: Channel) -> None:
    """Send a message that says that the channel works."""
    make([channel], kinds.TEST, f"{kinds.TEST}:{uuid4()}", record.database_now())
    sender.wake()


def send_again(delivery: Delivery, *, actor: str, surface: str) -> bool:
    """Try a failed message once more from the beginning; False when it has not failed.

    The record of its run, where it has one, says on whose word.
    """
    if delivery.run_id is None:
        again = _pending_again(delivery)
    else:
        with record.turn(delivery.run_id, actor=actor, surface=surface) as turn:
            again = _pending_again(delivery)
            if again:
                text = "A message that had failed is sent once more."
                told = {"level": "info", "message": text, "delivery": str(delivery.uid)}
                turn.append(EventKind.LOG, (), told)
    if again:
        logger.info("message sent again delivery=%s by=%s", delivery.uid, actor)
        sender.wake()
    return again


def _pending_again(delivery: Delivery) -> bool:
    """Whether it had failed, and now waits to be sent; the row count decides."""
    again = Delivery.objects.filter(
        pk=delivery.pk, state=Delivery.State.FAILED, channel__removed_at=None
    ).update(
        state=Delivery.State.PENDING,
        attempts=0,
        held=False,
        next_at=record.database_now(),
        done_at=None,
        sent_with=None,
    )
    return bool(again)


def prefer(user: User, *, zone: str, quiet_from: time | None, quiet_until: time | None) -> None:
    """Keep the person's zone and quiet hours."""
    Preference.objects.update_or_create(
        user=user, defaults={"zone": zone, "quiet_from": quiet_from, "quiet_until": quiet_until}
    )
