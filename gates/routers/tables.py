"""The services that questions may go to, and what was sent to them."""

from __future__ import annotations

import re
import uuid
from typing import ClassVar, Final

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from gates.hidden import COLUMN, LINE, HiddenLine
from gates.notify.addresses import MAX_ADDRESS, AddressRefused, read_webhook
from gates.signing import MIN_SECRET, new_secret
from runs.models import Run

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MAX_SECONDS: Final = 60


def need_name(value: str) -> None:
    """Raise ValidationError for a name that an audience or an actor could not hold."""
    if not NAME.fullmatch(value):
        raise ValidationError("A name is letters, digits, dots, dashes and underscores.")


def need_address(value: str) -> None:
    """Raise ValidationError for an address that no question may be sent to."""
    try:
        read_webhook(value)
    except AddressRefused as refusal:
        raise ValidationError(str(refusal)) from None


def need_secret(value: str) -> None:
    """Raise ValidationError for a secret that is too short to sign with, or too long to keep."""
    if not MIN_SECRET <= len(value) <= LINE:
        raise ValidationError(f"A secret has {MIN_SECRET} to {LINE} characters.")


class Router(models.Model):
    """A service that answers questions; authors name it, and only who looks after this sets it."""

    name = models.CharField(max_length=100, unique=True, validators=[need_name])
    url = models.CharField(
        "URL",
        max_length=MAX_ADDRESS,
        validators=[need_address],
        help_text="Questions are posted to it. Whoever sets it makes this server call it.",
    )
    secret = HiddenLine(
        max_length=COLUMN,
        default=new_secret,
        validators=[need_secret],
        help_text="Signs what is posted; the service checks it.",
    )
    timeout_seconds = models.PositiveIntegerField(
        default=10, validators=[MinValueValidator(1), MaxValueValidator(MAX_SECONDS)]
    )
    sees_sensitive = models.BooleanField(
        default=False, help_text="Whether it gets what a question declares sensitive."
    )
    enabled = models.BooleanField(default=True)

    def __str__(self) -> str:
        return self.name

    @property
    def actor(self) -> str:
        """As whom it claims and answers."""
        return f"router:{self.name}"


class RouterCall(models.Model):
    """One question on its way to a router; `uid` is the same however often it is sent."""

    class State(models.TextChoices):
        PENDING = "pending"
        SENDING = "sending"
        WAITING = "waiting"
        ANSWERED = "answered"
        FAILED = "failed"
        WITHDRAWN = "withdrawn"

    uid = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="router_calls")
    request_id = models.CharField(max_length=600)
    seq = models.PositiveBigIntegerField(help_text="The event that put the question to it.")
    router = models.CharField(max_length=100)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "seq"], name="router_call_once_per_event"),
            models.CheckConstraint(
                condition=~Q(state="sending") | Q(lease_until__isnull=False),
                name="router_call_is_sent_under_a_lease",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["next_at"], condition=Q(state="pending"), name="router_call_due"),
            models.Index(
                fields=["lease_until"], condition=Q(state="sending"), name="router_call_leased"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.router} {self.uid}"
