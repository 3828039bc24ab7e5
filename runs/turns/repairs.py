"""The table of sweeps that found something."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Repair(models.Model):
    """A sweep that found something to repair; the newest are kept (runs/sweep.py)."""

    at = models.DateTimeField()
    by = models.CharField(max_length=200)
    lost = models.PositiveIntegerField(default=0)
    resent = models.PositiveIntegerField(default=0)
    woken = models.PositiveIntegerField(default=0)
    other = models.PositiveIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return f"sweep of {self.at:%Y-%m-%d %H:%M:%S}"
