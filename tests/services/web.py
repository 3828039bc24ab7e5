"""The product's pages, sending to where the workers of the test look."""

from __future__ import annotations

from obversa_site.asgi import application
from tests.services import celery_app

__all__ = ["application", "celery_app"]
