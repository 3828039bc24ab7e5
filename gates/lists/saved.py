"""Filters that a person has named: what is saved is the end of a list's address, nothing more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

from django.conf import settings
from django.db import models
from django.utils.http import urlencode

from runs.plaintext import visible

MAX_SAVED: Final = 50
MAX_NAME: Final = 60
MAX_QUERY: Final = 2_000
MAX_VALUE: Final = 200


class FilterRefused(ValueError):
    """The filter cannot be saved like that."""


class SavedFilter(models.Model):
    """One name of one person for a list narrowed in one way; `place` is the list."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_filters")
    place = models.CharField(max_length=40)
    name = models.CharField(max_length=MAX_NAME)
    query = models.CharField(max_length=MAX_QUERY)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "place", "name"], name="saved_filter_name_once_per_list"
            )
        ]

    def __str__(self) -> str:
        return self.name


def query_of(given: Mapping[str, str], names: Iterable[str]) -> str:
    """The part of an address that narrows a list: these names, in this order, where they say so."""
    kept = {name: given.get(name, "").replace("\0", "").strip()[:MAX_VALUE] for name in names}
    return urlencode({name: value for name, value in kept.items() if value})


def save_filter(user_id: int, place: str, name: str, query: str) -> SavedFilter:
    """Keep the filter under its name; the same name again is the new one. Raises FilterRefused."""
    name = visible(" ".join(name.replace("\0", "").split()))
    if not name or len(name) > MAX_NAME:
        raise FilterRefused(f"A filter has a name of 1 to {MAX_NAME} characters.")
    if not query or len(query) > MAX_QUERY:
        raise FilterRefused("Nothing is narrowed here, so there is nothing to save.")
    mine = SavedFilter.objects.filter(user=user_id)
    if not mine.filter(place=place, name=name).exists() and mine.count() >= MAX_SAVED:
        raise FilterRefused(f"You have {MAX_SAVED} filters. Delete one first.")
    saved, _ = SavedFilter.objects.update_or_create(
        user_id=user_id, place=place, name=name, defaults={"query": query}
    )
    return saved


def delete_filter(user_id: int, pk: int) -> SavedFilter | None:
    """Forget one of this person's own filters; None when it is not theirs."""
    found = SavedFilter.objects.filter(user=user_id, pk=pk).first()
    if found is not None:
        found.delete()
        found.pk = pk
    return found


def filters_of(user_id: int, place: str) -> list[SavedFilter]:
    """What this person has saved for the list, by name."""
    return list(SavedFilter.objects.filter(user=user_id, place=place)[:MAX_SAVED])
