"""Keys as callers, and callers with the rights they have now."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from django.utils import timezone

from gates.models import ApiKey
from runs.people.actors import actor_label, actor_labels
from runs.people.principals import Principal

__all__ = [
    "Principal",
    "actor_label",
    "actor_labels",
    "fresh",
    "is_live",
    "principal_for_key",
    "router_of",
]

_SUFFIX: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def principal_for_key(key: ApiKey, suffix: str = "") -> Principal:
    """The caller a key stands for; raises ValueError for a suffix that is no short name."""
    if suffix and not _SUFFIX.fullmatch(suffix):
        raise ValueError(
            "A router's suffix is 1 to 64 letters, digits, dots, dashes or underscores."
        )
    if key.router_id is not None:
        return _router(key)
    return Principal.for_key(key.name, key.scopes, key.user, suffix)


def _router(key: ApiKey) -> Principal:
    """A service with its key, while its router is in use."""
    router = key.router
    assert router is not None
    scopes = key.scopes if router.enabled else ()
    return Principal.for_router(router.name, key_name=key.name, scopes=scopes)


def router_of(who: Principal, router_id: str | None) -> str:
    """The router a caller claims as: itself, or one of its own named routers."""
    if router_id is None or router_id == who.actor:
        return who.actor
    base, _, suffix = router_id.partition("/")
    if (
        who.key_name
        and not who.router
        and base == f"key:{who.key_name}"
        and _SUFFIX.fullmatch(suffix)
    ):
        return router_id
    raise ValueError(f"{router_id!r} is not a router of {who.actor}.")


def fresh(who: Principal) -> Principal:
    """The same caller with the rights it has now: people leave groups and keys are revoked."""
    if who.key_name:
        key = ApiKey.objects.select_related("user").filter(name=who.key_name).first()
        if key is None or not is_live(key):
            return Principal(actor=who.actor, surface=who.surface)
        return principal_for_key(key, "" if who.router else who.actor.partition("/")[2])
    # What a caller has read of its rights stays with it; another one reads them anew.
    return replace(who, _members={})


def is_live(key: ApiKey) -> bool:
    """Whether the key opens anything now."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > timezone.now())
