from __future__ import annotations

from django.apps import AppConfig


class GatesConfig(AppConfig):
    """Questions, and the people who answer them."""

    name = "gates"
    verbose_name = "Gates"

    def ready(self) -> None:
        """Keep the gates' rows in step with every record, inside its transaction."""
        from gates.projector import project  # noqa: PLC0415  needs the models
        from runs import record  # noqa: PLC0415

        record.register_projector(project)
