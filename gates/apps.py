from __future__ import annotations

from django.apps import AppConfig


class GatesConfig(AppConfig):
    """Questions, and the people who answer them."""

    name = "gates"
    verbose_name = "Gates"

    def ready(self) -> None:
        """Keep the gates' rows in step with every record, sweep and rebuild."""
        from gates.access import runs_with_questions_for
        from gates.actions import grants
        from gates.notify import notices, purging, sender
        from gates.projector import project, rebuild_requests
        from gates.receipts import archived
        from gates.routers import calls, worker
        from gates.services import expire_due
        from gates.teams.calendars import calendar_for
        from runs import actions, record, sweep
        from runs.access import also_visible
        from runs.archive import archiving, rebuild, retention
        from runs.pages import archived as pages

        record.register_projector(project)
        record.register_projector(notices.project)
        record.register_projector(calls.project)
        record.register_calendars(calendar_for)
        record.register_projector(grants.project)
        rebuild.also(rebuild_requests)
        rebuild.also(grants.rebuild)
        actions.register_grants(grants.find)
        actions.register_owner(grants.owner)
        sweep.also(expire_due)
        sweep.also(sender.sweep)
        sweep.also(worker.sweep)
        archiving.also(archived.PART)
        pages.questions_from(archived.questions_of)
        retention.also(purging.purge)
        if runs_with_questions_for not in also_visible:
            also_visible.append(runs_with_questions_for)
