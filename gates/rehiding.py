"""Writing every kept secret anew under the newest key (gates/hidden.py)."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models.functions import Cast

from gates import hidden
from gates.models import Channel, Router

PLACES: Final[tuple[tuple[type[models.Model], str], ...]] = (
    (Channel, "address"),
    (Channel, "secret"),
    (Router, "secret"),
)


def hide_all() -> tuple[int, int]:
    """How many were written anew, and how many no key of ours opens; those stay as they are."""
    done = unread = 0
    for model, name in PLACES:
        for pk, kept in _kept(model, name):
            if hidden.is_newest(kept):
                continue
            text = hidden.show(kept)
            if not text:
                unread += 1
                continue
            # Whoever changed it meanwhile has written it under the newest key.
            same = model._default_manager.annotate(raw=_raw(name)).filter(pk=pk, raw=kept)
            done += same.update(**{name: text})
    return done, unread


def _raw(name: str) -> Cast:
    """The column as it stands there."""
    return Cast(name, models.TextField())


def _kept(model: type[models.Model], name: str) -> list[tuple[int, str]]:
    rows = model._default_manager.annotate(raw=_raw(name)).values_list("pk", "raw")
    return [(int(pk), str(raw)) for pk, raw in rows]
