"""Pages."""

from __future__ import annotations

app_name = "gates"
urlpatterns: list[object] = []
