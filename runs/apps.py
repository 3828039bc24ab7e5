from __future__ import annotations

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Runs, their record, and the work on them."""

    name = "runs"
    verbose_name = "Runs"

    def ready(self) -> None:
        """Let what is open notice a right that is lost, and who waits a place that is free."""
        from runs import admission
        from runs.feeds import rights_news

        rights_news.heed()
        admission.heed()
