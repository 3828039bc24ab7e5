"""The table of standing grants; a projection of the runs that made them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from runs.models import Run


class Grant(models.Model):
    """A yes that holds for later calls of a tool (interactions.md section 6)."""

    class Scope(models.TextChoices):
        PRINCIPAL = "principal"
        TENANT = "tenant"
        CATEGORY = "category"
        CONVERSATION = "conversation"

    class MatchType(models.TextChoices):
        TOOL = "tool"
        CATEGORY = "category"

    id = models.UUIDField(primary_key=True, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="grants")
    scope = models.CharField(max_length=12, choices=Scope.choices)
    match_type = models.CharField(max_length=8, choices=MatchType.choices)
    match_value = models.CharField(max_length=60)
    principal = models.CharField(max_length=200, blank=True)
    conversation = models.CharField(max_length=200, blank=True)
    granted_by = models.CharField(max_length=200)
    source_request_id = models.CharField(max_length=600)
    policy_version = models.CharField(max_length=20, blank=True)
    granted_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(scope__in=["principal", "tenant", "category", "conversation"]),
                name="grant_scope_is_known",
            ),
            models.CheckConstraint(
                condition=Q(match_type__in=["tool", "category"]) & ~Q(match_value=""),
                name="grant_match_is_typed",
            ),
            models.CheckConstraint(
                condition=~Q(scope="conversation") | ~Q(conversation=""),
                name="grant_of_a_conversation_names_it",
            ),
            models.CheckConstraint(
                condition=~Q(scope="principal") | ~Q(principal=""),
                name="grant_of_a_principal_names_it",
            ),
            models.CheckConstraint(
                condition=Q(revoked_at__isnull=True, revoked_by="")
                | Q(revoked_at__isnull=False) & ~Q(revoked_by=""),
                name="grant_revocation_has_its_person",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["match_type", "match_value"],
                condition=Q(revoked_at__isnull=True),
                name="grant_in_force",
            ),
            models.Index(fields=["-granted_at", "-id"], name="grant_newest"),
            models.Index(fields=["principal", "-granted_at", "-id"], name="grant_of_principal"),
            models.Index(fields=["granted_by", "-granted_at", "-id"], name="grant_by_granter"),
        ]

    def __str__(self) -> str:
        return f"{self.match_value} for {self.conversation or self.principal or 'everybody'}"

    def get_absolute_url(self) -> str:
        return reverse("gates:grant-list")
