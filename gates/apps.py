from __future__ import annotations

from django.apps import AppConfig


class GatesConfig(AppConfig):
    """Questions, and the people who answer them."""

    name = "gates"
    verbose_name = "Gates"

    def ready(self) -> None:
        """Keep the gates' rows in step with every record, inside its transaction."""
        from gates.access import runs_with_questions_for
        from gates.projector import project
        from runs import record
        from runs.access import also_visible

        record.register_projector(project)
        if runs_with_questions_for not in also_visible:
            also_visible.append(runs_with_questions_for)
