from __future__ import annotations

from django.apps import AppConfig


class GatesConfig(AppConfig):
    """Questions, and the people who answer them."""

    name = "gates"
    verbose_name = "Gates"

    def ready(self) -> None:
        """Keep the gates' rows in step with every record, sweep and rebuild."""
        from gates.access import runs_with_questions_for
        from gates.calendars import calendar_for
        from gates.notify import notices, sender
        from gates.projector import project, rebuild_requests
        from gates.services import expire_due
        from runs import rebuild, record, sweep
        from runs.access import also_visible

        record.register_projector(project)
        record.register_projector(notices.project)
        record.register_calendars(calendar_for)
        rebuild.also(rebuild_requests)
        sweep.also(expire_due)
        sweep.also(sender.sweep)
        if runs_with_questions_for not in also_visible:
            also_visible.append(runs_with_questions_for)
