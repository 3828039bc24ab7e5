"""Where people want to be told, and every message that was or will be sent there."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q

from gates.hidden import COLUMN, HiddenLine, HiddenText
from gates.notify.addresses import masked
from runs.fields import JSONText
from runs.models import Run


class Channel(models.Model):
    """One way to a person or to a team. `address` and `secret` are shown nowhere whole."""

    class Kind(models.TextChoices):
        MAIL = "mail", "E-mail"
        SERVICE = "service", "Chat or push service"
        WEBHOOK = "webhook", "Webhook"

    class Digest(models.TextChoices):
        OFF = "off", "at once"
        HOURLY = "hourly", "together, every hour"
        DAILY = "daily", "together, every morning"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="channels"
    )
    team = models.ForeignKey(Group, models.CASCADE, null=True, related_name="channels")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.CharField(max_length=60)
    address = HiddenText(blank=True)
    secret = HiddenLine(max_length=COLUMN, blank=True)
    wants = JSONText(default=list)
    digest = models.CharField(max_length=10, choices=Digest.choices, default=Digest.OFF)
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(user__isnull=False, team__isnull=True)
                | Q(user__isnull=True, team__isnull=False),
                name="channel_has_one_owner",
            ),
            models.UniqueConstraint(
                fields=["user"],
                condition=Q(kind="mail", removed_at__isnull=True),
                name="channel_one_mail_per_person",
            ),
            models.CheckConstraint(
                condition=Q(removed_at__isnull=True) | Q(address="", secret=""),
                name="channel_forgets_its_address_when_removed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.name}"

    @property
    def shown_address(self) -> str:
        """Where it leads, without what would let a reader send there."""
        if self.kind == self.Kind.MAIL:
            return self.address or (self.user.email if self.user is not None else "")
        return masked(self.address)


class Preference(models.Model):
    """What holds for all channels of one person."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="preference"
    )
    zone = models.CharField(max_length=64, default="UTC")
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True, quiet_until__isnull=True)
                | Q(quiet_from__isnull=False, quiet_until__isnull=False),
                name="preference_quiet_hours_have_both_ends",
            )
        ]

    def __str__(self) -> str:
        return f"Preferences of {self.user_id}"


class Notice(models.Model):
    """An event that somebody may have to be told; gone as soon as its deliveries are there."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="+")
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=40)
    request_id = models.CharField(max_length=600, blank=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.run_id} {self.seq}"


class Delivery(models.Model):
    """One message on one channel. `key` is what it tells, so that it is told there once."""

    class State(models.TextChoices):
        PENDING = "pending"
        SENDING = "sending"
        SENT = "sent"
        FAILED = "failed"
        WITHDRAWN = "withdrawn"

    OVER: ClassVar = (State.SENT, State.FAILED, State.WITHDRAWN)

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    channel = models.ForeignKey(Channel, models.CASCADE, related_name="deliveries")
    run = models.ForeignKey(Run, models.CASCADE, null=True, related_name="+")
    request = models.ForeignKey(
        "gates.Request", models.CASCADE, null=True, related_name="deliveries"
    )
    seq = models.PositiveBigIntegerField(null=True)
    kind = models.CharField(max_length=40)
    key = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    held = models.BooleanField(default=False)
    next_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    on_wire = models.BooleanField(default=False)
    sent_with = models.ForeignKey("self", models.SET_NULL, null=True, related_name="+")
    error = models.TextField(blank=True)
    created_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["channel", "key"], name="delivery_once_per_event_and_channel"
            ),
            models.UniqueConstraint(
                fields=["channel"],
                condition=Q(state="sending"),
                name="delivery_one_at_a_time_per_channel",
            ),
            models.CheckConstraint(
                condition=Q(state="sending", lease_until__isnull=False)
                | ~Q(state="sending") & Q(lease_until__isnull=True, on_wire=False),
                name="delivery_lease_matches_state",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "sending"], done_at__isnull=True)
                | Q(state__in=["sent", "failed", "withdrawn"], done_at__isnull=False),
                name="delivery_end_matches_state",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["channel", "id"],
                condition=Q(state__in=["pending", "sending"]),
                name="delivery_open",
            ),
            models.Index(fields=["channel", "-id"], name="delivery_log_of_channel"),
            models.Index(fields=["-id"], condition=Q(state="failed"), name="delivery_failed"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.uid}"
