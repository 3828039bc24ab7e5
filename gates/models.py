"""The tables of questions; projections of the record, but for keys and teams."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.urls import reverse

from gates.actions.grant_table import Grant
from gates.lists.saved import SavedFilter
from gates.notify.tables import Channel, Delivery, Notice, Preference
from gates.receipts.archived_table import ArchivedRequest
from gates.routers.tables import Router, RouterCall
from runs.fields import JSONText
from runs.models import Audience, Run

__all__ = [
    "ApiKey",
    "ArchivedRequest",
    "Channel",
    "Delivery",
    "Grant",
    "Notice",
    "Preference",
    "Request",
    "Response",
    "Router",
    "RouterCall",
    "SavedFilter",
    "Team",
]


class Request(models.Model):
    """One question: a gate, a typed question or an approval of an action."""

    class Kind(models.TextChoices):
        GATE = "gate"
        QUESTION = "question"
        APPROVAL = "approval"

    class Status(models.TextChoices):
        PENDING = "pending"
        CLAIMED = "claimed"
        ANSWERED = "answered"
        SUPERSEDED = "superseded"
        EXPIRED = "expired"
        CANCELLED = "cancelled"

    class How(models.TextChoices):
        """What gave the question its end: a person, its time, or somebody who was not asked."""

        ANSWERED = "answered"
        TIMED_OUT = "timed_out"
        OVERRIDDEN = "overridden"

    OPEN: ClassVar = (Status.PENDING, Status.CLAIMED)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="requests")
    request_id = models.CharField(max_length=600)
    gate_id = models.CharField(max_length=500)
    gate_version = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.GATE)
    digest = models.CharField(max_length=64, db_index=True)
    decision_text = models.TextField()
    response_schema = JSONText()
    input = JSONText(null=True)
    presentation = JSONText(default=dict)
    routing = JSONText(default=dict)
    step_path = JSONText(default=list)
    audience = models.ForeignKey(Audience, models.PROTECT, related_name="+")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PENDING)
    holder = models.CharField(max_length=200, blank=True)
    claim_seq = models.PositiveBigIntegerField(null=True)
    claimed_at = models.DateTimeField(null=True)
    priority = models.IntegerField(default=0)
    due_at = models.DateTimeField(null=True)
    due_order = models.DateTimeField(help_text="due_at, expires_at, or the end of time")
    expires_at = models.DateTimeField(null=True)
    on_answer = models.CharField(max_length=10, default="resume")
    needed = models.PositiveIntegerField(default=1)
    asked_by = models.CharField(max_length=200, default="system")
    asked_seq = models.PositiveBigIntegerField()
    superseded_by = models.CharField(max_length=600, blank=True)
    closed_reason = models.TextField(blank=True)
    created_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)
    answered_by = models.CharField(max_length=200, blank=True)
    how = models.CharField(max_length=10, choices=How.choices, blank=True)
    changed_at = models.DateTimeField()

    class Meta:
        permissions: ClassVar = [
            ("view_sensitive", "Can read what questions declare sensitive"),
            ("break_glass", "Can answer in an emergency what others were asked"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "request_id"], name="request_once_per_run"),
            models.CheckConstraint(
                condition=Q(status="claimed", claim_seq__isnull=False) & ~Q(holder="")
                | (~Q(status="claimed") & Q(holder="", claim_seq__isnull=True)),
                name="request_claim_matches_status",
            ),
            models.CheckConstraint(
                condition=Q(status="answered", answered_at__isnull=False)
                | ~Q(status="answered") & Q(answered_at__isnull=True),
                name="request_answer_matches_status",
            ),
        ]
        # Each is a list's whole order, to its last key: many that were asked at once are alike
        # in all others, and every page would have to sort them all.
        indexes: ClassVar = [
            models.Index(
                fields=["audience", "status", "-priority", "due_order", "created_at", "id"],
                name="request_inbox",
            ),
            models.Index(
                fields=["status", "-priority", "due_order", "created_at", "id"],
                name="request_by_status",
            ),
            models.Index(fields=["holder", "status"], name="request_by_holder"),
            models.Index(
                fields=["audience", "status", "-changed_at", "-id"],
                name="request_history_of_audience",
            ),
            models.Index(fields=["status", "-changed_at", "-id"], name="request_history"),
            models.Index(
                fields=["asked_by", "status", "-priority", "due_order", "created_at", "id"],
                name="request_by_asker",
            ),
            models.Index(
                fields=["asked_by", "status", "-changed_at", "-id"], name="request_history_of_asker"
            ),
            models.Index(
                fields=["expires_at"],
                condition=Q(status__in=["pending", "claimed"], expires_at__isnull=False),
                name="request_expiring",
            ),
            models.Index(
                fields=["audience", "created_at"],
                condition=Q(status__in=["pending", "claimed"]),
                name="request_oldest_open",
            ),
            models.Index(
                fields=["id"],
                condition=Q(status__in=["pending", "claimed"], needed__gt=1),
                name="request_open_for_several",
            ),
            models.Index(
                fields=["due_at"],
                condition=Q(status__in=["pending", "claimed"], due_at__isnull=False),
                name="request_due",
            ),
            models.Index(
                fields=["kind", "created_at"],
                condition=Q(status__in=["pending", "claimed"]),
                name="request_open_by_kind",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.gate_id} {self.digest[:8]}"

    def get_absolute_url(self) -> str:
        return reverse("gates:gate", args=[self.pk])

    @property
    def is_open(self) -> bool:
        return self.status in self.OPEN

    @property
    def fingerprint(self) -> str:
        """The first characters of the digest, for people to compare."""
        return self.digest[:8]


class Response(models.Model):
    """One answer to a request."""

    request = models.ForeignKey(Request, models.CASCADE, related_name="responses")
    actor = models.CharField(max_length=200)
    response = JSONText()
    at = models.DateTimeField()
    surface = models.CharField(max_length=20, blank=True)
    seq = models.PositiveBigIntegerField()
    deputy_for = models.CharField(max_length=200, blank=True)
    overrides = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["seq"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["request", "actor"],
                condition=Q(overrides=False),
                name="response_once_per_actor",
            ),
            models.UniqueConstraint(
                fields=["request"], condition=Q(overrides=True), name="response_overrides_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.actor} answered"


class Deputy(models.Model):
    """Who answers for a person that is away, and until when."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="named_deputy"
    )
    deputy = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="deputy_for")
    until = models.DateTimeField()

    class Meta:
        verbose_name_plural = "deputies"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~Q(person=models.F("deputy")), name="deputy_is_somebody_else"
            )
        ]

    def __str__(self) -> str:
        return f"{self.deputy} for {self.person}"


class ApiKey(models.Model):
    """A key for programs; only its hash is kept."""

    SCOPES: ClassVar = ("read", "start", "claim", "answer", "operate")

    name = models.CharField(max_length=100, unique=True)
    prefix = models.CharField(max_length=12, unique=True)
    hash = models.CharField(max_length=64)
    scopes = JSONText(default=list)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="api_keys"
    )
    # A key of a service acts as its router, and as nothing else.
    router = models.ForeignKey(
        Router, models.CASCADE, null=True, blank=True, related_name="api_keys"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Team(models.Model):
    """A group as a team: its queue and its own words."""

    group = models.OneToOneField(Group, models.CASCADE, related_name="team")
    description = models.TextField(blank=True)
    calendar = JSONText(
        null=True,
        blank=True,
        editable=False,
        help_text="its working time (runs/kernel/worktime.py), where it has said so",
    )

    def __str__(self) -> str:
        return self.group.name

    def get_absolute_url(self) -> str:
        return reverse("gates:team", args=[self.group_id])
