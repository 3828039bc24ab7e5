"""The one API object; the apps' routers are added to it."""

from __future__ import annotations

from ninja import NinjaAPI

api = NinjaAPI(title="Obversa", version="1")
