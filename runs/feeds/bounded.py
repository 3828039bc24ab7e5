"""How much one answer carries: lists are cut by their bytes as well as by their rows.

A row may hold megabytes of a caller's JSON. Texts are measured in the database before they are
read, so that neither the answer nor this process grows with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Any, Final

from django.db.models import Model, TextField, Value
from django.db.models.functions import Coalesce, Length

from runs.models import Event

MAX_CHARACTERS = 4 * 1024 * 1024
# So few rows are read without measuring them first.
FEW: Final = 4


def text_length(model: type[Model]) -> Any:
    """An expression for the characters in all texts of a row, JSON included."""
    texts = [field.name for field in model._meta.concrete_fields if isinstance(field, TextField)]
    return reduce(add, (Coalesce(Length(name), 0) for name in texts), Value(0))


def fitting(lengths: Iterable[int]) -> int:
    """How many of these fit into one answer, from the first on; one always does."""
    total = count = 0
    for length in lengths:
        total += length
        if count and total > MAX_CHARACTERS:
            break
        count += 1
    return count


def events_that_fit(run_id: Any, after: int, last_seq: int, limit: int) -> int:
    """How many of the events after a number one answer carries, `limit` at most."""
    if last_seq - after <= FEW:
        return limit
    rows = Event.objects.filter(run_id=run_id, seq__gt=after).order_by("seq")
    return max(1, fitting(rows.values_list(Length("payload"), flat=True)[:limit]))
