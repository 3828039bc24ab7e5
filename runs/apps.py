from __future__ import annotations

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Runs, their record, and the work on them."""

    name = "runs"
    verbose_name = "Runs"

    def ready(self) -> None:
        """Let what is open notice a right that is lost, and who waits a place that is free."""
        from runs import admission, sweep
        from runs.archive import retention
        from runs.feeds import rights_news

        rights_news.heed()
        sweep.also(retention.archive_due)
        sweep.also(retention.tidy_up)
        admission.heed()
