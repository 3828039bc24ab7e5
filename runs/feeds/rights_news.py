"""Rings when rights change, so that what is open asks again who it shows things to.

Whoever changes rights by a statement of their own in the database rings nothing: every open page
and stream asks again by itself within half a minute (runs/feeds/tails.py, gates/inboxes.py).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import Group, Permission, User
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
        post_delete.connect(_deleted, sender=model, dispatch_uid=f"rights-{model.__name__}")
    for through in (User.groups.through, User.user_permissions.through, Group.permissions.through):
        m2m_changed.connect(_linked, sender=through, dispatch_uid=f"rights-{through.__name__}")


def _saved(*, instance: Any, created: bool, update_fields: frozenset[str] | None, **_: Any) -> None:
    if not created and (update_fields is None or not update_fields <= _HARMLESS):
        _ring([instance.pk])


def _deleted(*, instance: Any, **_: Any) -> None:
    """Somebody left, or a session ended: a group's end is everybody's matter."""
    if isinstance(instance, User):
        _ring([instance.pk])
    elif isinstance(instance, Session):
        owner = str(instance.get_decoded().get(SESSION_KEY) or "")
        _ring([int(owner)] if owner.isdecimal() else [])
    else:
        _ring(None)


def _linked(
    *, action: str, instance: Any, reverse: bool, pk_set: set[int] | None, **_: Any
) -> None:
    if not action.startswith("post_"):
        return
    if isinstance(instance, User):
        _ring([instance.pk])
    elif reverse and pk_set and not isinstance(instance, Permission):
        _ring(sorted(pk_set))  # people of a group, from its side
    else:
        _ring(None)


def _ring(people: list[int] | None) -> None:
    transaction.on_commit(partial(live.ring_rights, people))
