from __future__ import annotations

from django.apps import AppConfig


class SiteConfig(AppConfig):
    """Brings the site's own commands, its checks, and the Celery app that tasks belong to."""

    name = "obversa_site"
    verbose_name = "Obversa"

    def ready(self) -> None:
        """Load them, each registers itself; and make spans where the environment asks for them."""
        from obversa_site import celery, checks, telemetry  # noqa: F401  it is for the import

        if telemetry.is_wanted() and telemetry.is_installed():
            telemetry.begin()
