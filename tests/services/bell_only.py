"""The product's pages without their clocks: what they show they were rung for."""

from __future__ import annotations

from importlib import import_module

from tests.services.web import application

__all__ = ["application"]

for path, names in (
    ("runs.feeds.tails", ("LOOK_SECONDS", "ASK_AGAIN_SECONDS")),
    ("gates.inboxes", ("LOOK_SECONDS", "GLANCE_SECONDS")),
):
    for name in names:
        setattr(import_module(path), name, 3600.0)
