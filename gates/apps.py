from __future__ import annotations

from django.apps import AppConfig


class GatesConfig(AppConfig):
    """Questions, and the people who answer them."""

    name = "gates"
    verbose_name = "Gates"

    def ready(self) -> None:
        """Keep the gates' rows in step with every record, inside its transaction."""
        from gates.projector import project
        from runs import record

        record.register_projector(project)
