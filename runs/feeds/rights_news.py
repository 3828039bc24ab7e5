"""Rings when rights change, so that what is open asks again who it shows things to.

Whoever changes rights by a statement of their own in the database rings nothing: every open page
and stream asks again by itself within half a minute (runs/feeds/tails.py, gates/consumers.py).
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.signals import m2m_changed, post_delete, post_save

from runs import live

# Signing in is noted in the person's row, and changes no right.
_HARMLESS = frozenset({"last_login"})


def heed() -> None:
    """Watch people, groups, permissions and sessions for as long as the process lives."""
    post_save.connect(_saved, sender=User, dispatch_uid="rights-user")
    for model in (User, Group, Session):
        post_delete.connect(_changed, sender=model, dispatch_uid=f"rights-{model.__name__}")
    for through in (User.groups.through, User.user_permissions.through, Group.permissions.through):
        m2m_changed.connect(_linked, sender=through, dispatch_uid=f"rights-{through.__name__}")


def _saved(*, created: bool, update_fields: frozenset[str] | None, **_: Any) -> None:
    if not created and (update_fields is None or not update_fields <= _HARMLESS):
        _changed()


def _linked(*, action: str, **_: Any) -> None:
    if action.startswith("post_"):
        _changed()


def _changed(**_: Any) -> None:
    transaction.on_commit(live.ring_rights)
