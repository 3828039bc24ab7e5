"""The tables of limits: how many runs are under way at once, and who has or awaits a place."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q


class Limit(models.Model):
    """How many runs of a workflow, or for a team, are under way at once.

    `key` is `workflow:NAME` or `team:NAME`. A run that `lends` gives its place to others while it
    waits for a person or for its next try.
    """

    key = models.CharField(max_length=220, primary_key=True)
    most = models.PositiveIntegerField()
    lends = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(most__gte=1), name="limit_lets_somebody_in")
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.most}"


class Admission(models.Model):
    """A run's place under a limit, or in the queue for one; there is none for other runs.

    `rank` is when the run came, so much earlier as it has priority: the first is the next.
    """

    run = models.ForeignKey("runs.Run", models.CASCADE, related_name="admissions")
    key = models.CharField(max_length=220)
    admitted = models.BooleanField(default=False)
    rank = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "key"], name="admission_once_per_limit")
        ]
        indexes: ClassVar = [
            models.Index(fields=["key", "admitted", "rank", "id"], name="admission_in_line"),
        ]

    def __str__(self) -> str:
        return f"{self.key} {'has a place' if self.admitted else 'waits'}"
