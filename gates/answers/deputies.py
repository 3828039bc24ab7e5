"""Out of office: for a time, somebody else may answer what a person could answer.

A deputy gets nothing but that. They may not pass it on, their keys do not have it, and who asked is
kept from answering as a deputy as well. The record says in whose place an answer was given.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.utils import timezone

from gates.errors import DeputyRefused
from gates.models import Deputy
from gates.principals import Principal

MAX_DAYS: Final = 90
_CACHE: Final = "_stood_in_for"


def stood_in_for(who: Principal) -> list[Principal]:
    """The people who are away and named this one their deputy; asked once per caller."""
    if who.user is None or who.key_name:
        return []
    kept: Any = who.__dict__
    if _CACHE not in kept:
        now = timezone.now()
        found = Deputy.objects.filter(deputy=who.user, until__gt=now, person__is_active=True)
        away = [row.person for row in found.select_related("person").order_by("person")]
        kept[_CACHE] = [Principal.for_user(person, who.surface) for person in away]
    return list(kept[_CACHE])


def deputy_of(person: User) -> Deputy | None:
    """Who answers for the person now, if anybody does."""
    found = Deputy.objects.filter(person=person, until__gt=timezone.now())
    return found.select_related("deputy").first()


def name_deputy(person: User, username: str, until: datetime) -> Deputy:
    """Let somebody answer for the person until then; raises DeputyRefused."""
    name = username.strip()
    deputy = None if "\0" in name else User.objects.filter(username=name, is_active=True).first()
    if deputy is None:
        raise DeputyRefused("deputy", f"Nobody here signs in as {name!r}.")
    if deputy == person:
        raise DeputyRefused("deputy", "A deputy is somebody else.")
    now = timezone.now()
    if not now < until <= now + timedelta(days=MAX_DAYS):
        raise DeputyRefused("until", f"It ends in the next {MAX_DAYS} days.")
    row, _ = Deputy.objects.update_or_create(
        person=person, defaults={"deputy": deputy, "until": until}
    )
    return row


def drop_deputy(person: User) -> None:
    """Nobody answers for the person any longer."""
    Deputy.objects.filter(person=person).delete()
