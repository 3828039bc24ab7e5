from __future__ import annotations

from django.apps import AppConfig


class SiteConfig(AppConfig):
    """Brings the site's own commands, its checks, and the Celery app that tasks belong to."""

    name = "obversa_site"
    verbose_name = "Obversa"

    def ready(self) -> None:
        """Load both; each registers itself when it is imported."""
        from obversa_site import celery, checks  # noqa: F401  it is for the import
