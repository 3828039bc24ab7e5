"""The table of questions whose run is in the archive."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from runs.fields import JSONText
from runs.models import Audience, Run


class ArchivedRequest(models.Model):
    """What remains of a question: who may see it, and the receipt of its answer."""

    id = models.UUIDField(primary_key=True, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="archived_requests")
    request_id = models.CharField(max_length=600)
    gate_id = models.CharField(max_length=500)
    status = models.CharField(max_length=10)
    audience = models.ForeignKey(Audience, models.PROTECT, related_name="+")
    asked_by = models.CharField(max_length=200)
    answered_at = models.DateTimeField(null=True)
    receipt = JSONText(null=True)
    masked_receipt = JSONText(null=True, help_text="for whoever may not read sensitive values")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["run", "request_id"], name="archived_request_once_per_run"
            )
        ]

    def __str__(self) -> str:
        return self.gate_id
