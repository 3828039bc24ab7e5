"""Let runs in whose turn has come, and say where the others stand (runs/turns/admission.py)."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection
from django.db.models import Count, Exists, OuterRef

from runs import record
from runs.kernel.slots import QUEUED
from runs.models import Run
from runs.turns import admission
from runs.turns.lines import Admission, Limit

logger = logging.getLogger(__name__)
SURFACE: Final = "queue"
_mine = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run stands in one queue: `position` 1 is the next; `limit` runs go at a time."""

    kind: str
    name: str
    limit: int
    position: int


def heed() -> None:
    """Let the next in after every turn that may have freed a place."""
    admission.when_freed(admit)


def admit(keys: Iterable[str]) -> int:
    """Let in whoever there is room for under these limits; returns how many.

    First come, first served within a priority. Whom another limit keeps out keeps nobody behind
    it waiting.
    """
    if (begun := getattr(_mine, "keys", None)) is not None:
        # A run that was let in has freed a place in its very first turn.
        begun.extend(keys)
        return 0
    count, _mine.keys = 0, list(keys)
    try:
        while _mine.keys:
            count += _admit(_mine.keys.pop())
    finally:
        del _mine.keys
    return count


def repair() -> int:
    """Let in whom a killed process forgot, and whoever a higher limit has made room for."""
    return admit(Admission.objects.filter(admitted=False).values_list("key", flat=True).distinct())


def _admit(key: str) -> int:
    count, tried = 0, set[UUID]()
    while (run_id := _next(key, tried)) is not None:
        tried.add(run_id)
        try:
            with record.turn(run_id, surface=SURFACE) as turn:
                count += admission.let_in(turn)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            # What is wrong with one must not keep the others waiting.
            logger.exception("run not let in run=%s", run_id)
    return count


def _next(key: str, without: Collection[UUID]) -> UUID | None:
    """The first in this line whom no limit keeps out, as far as one sees without their locks."""
    taken = _taken()
    full = [one.key for one in Limit.objects.all() if taken.get(one.key, 0) >= one.most]
    if key in full:
        return None
    line = Admission.objects.filter(key=key, admitted=False).exclude(run__in=list(without))
    if full:
        kept_out = Admission.objects.filter(run=OuterRef("run"), key__in=full)
        line = line.exclude(Exists(kept_out))
    return line.order_by("rank", "id").values_list("run_id", flat=True).first()


def _taken(keys: Collection[str] | None = None) -> dict[str, int]:
    """How many places are taken under these limits, or under all."""
    held = Admission.objects.filter(admitted=True)
    if keys is not None:
        held = held.filter(key__in=list(keys))
    return dict(held.values_list("key").annotate(Count("pk")).order_by())


def places_of(runs: Iterable[Run]) -> dict[UUID, list[Place]]:
    """Where each of these runs stands that waits for its turn, the longest line first.

    A limit under which there is room is left out where another one keeps the run waiting. Three
    statements for all of them; a line is read once.
    """
    key_of = Run._meta.pk.get_db_prep_value
    wanted = {key_of(run.pk, connection): run.pk for run in runs if run.admission == QUEUED}
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_line(len(wanted)), [*wanted] * 2)
        rows = cursor.fetchall()
    named = Limit.objects.filter(key__in={key for _, key, _ in rows})
    limits = dict(named.values_list("key", "most"))
    taken = _taken(limits)
    full = {key for key, most in limits.items() if taken.get(key, 0) >= most}
    found: dict[UUID, list[Place]] = defaultdict(list)
    for run, key, position in sorted(rows, key=lambda row: (row[1] not in full, -row[2])):
        kind, _, name = key.partition(":")
        place = Place(kind=kind, name=name, limit=limits.get(key, 0), position=position)
        others = found[wanted[run]]
        if key not in full and any(admission.key_of(one.kind, one.name) in full for one in others):
            continue
        others.append(place)
    return found


def _line(count: int) -> str:
    marks = ", ".join(["%s"] * count)
    return f"""
SELECT run_id, key, position FROM (
    SELECT run_id, key, ROW_NUMBER() OVER (PARTITION BY key ORDER BY rank, id) AS position
    FROM runs_admission WHERE NOT admitted AND key IN (
        SELECT key FROM runs_admission WHERE run_id IN ({marks}) AND NOT admitted
    )
) AS line WHERE run_id IN ({marks})
"""  # noqa: S608  no values


def in_words(places: Iterable[Place]) -> str:
    """The places as one line: `3rd in the queue of release: 2 at a time`."""
    return "; ".join(_words(place) for place in places)


def _words(place: Place) -> str:
    of = place.name if place.kind == admission.WORKFLOW else f"the team {place.name}"
    return f"{ordinal(place.position)} in the queue of {of}: {place.limit} at a time"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, ... 11th, ... 21st."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"
