"""Who an actor of the record is, in words for people."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from django.contrib.auth.models import User

from runs.plaintext import visible

_PERSON: Final = re.compile(r"user:(\d{1,18})")


def actor_label(actor: str) -> str:
    """The actor in words; for more than one use actor_labels."""
    return actor_labels([actor])[actor]


def actor_labels(actors: Iterable[str]) -> dict[str, str]:
    """Each actor in words, with one query for all people among them."""
    wanted = {actor for actor in actors if actor}
    keys = {int(match[1]) for actor in wanted if (match := _PERSON.fullmatch(actor))}
    people = {f"user:{user.pk}": user for user in User.objects.filter(pk__in=keys)} if keys else {}
    labels = {"": "nobody"}
    for actor in wanted:
        user = people.get(actor)
        named = _label(actor) if user is None else user.get_full_name() or user.username
        labels[actor] = visible(named)
    return labels


def _label(actor: str) -> str:
    kind, _, name = actor.partition(":")
    match kind:
        case "user":
            return f"a former user ({name})"
        case "key":
            return f"key {name}"
        case "router":
            return f"service {name}"
        case "agent":
            return f"agent {name}"
        case "step":
            return f"step {name}"
        case "system":
            return "Obversa"
    return actor
