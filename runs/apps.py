from __future__ import annotations

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Runs, their record, and the work on them."""

    name = "runs"
    verbose_name = "Runs"
