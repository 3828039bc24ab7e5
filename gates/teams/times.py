"""How long a team takes: until somebody claims a question, and until it is answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Any, Final
from zoneinfo import ZoneInfo

from gates.lists.cursors import NEWEST_FIRST, first_of
from gates.models import Request
from runs.people.audiences import audiences_with

DAYS: Final = 30
# The last so many answers tell enough, and no page reads more of them.
SAMPLE: Final = 1_000
RECENT: Final = 200


@dataclass(frozen=True, slots=True)
class Measure:
    """Half were quicker than `median`, nine of ten no slower than `p90`; both in seconds."""

    median: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A day or a week that begins on `starts`; no measure where nothing was answered in it."""

    starts: date
    count: int
    claim: Measure | None
    answer: Measure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The spans of the last thirty days, oldest first; `is_cut` when there were more answers."""

    spans: list[Span]
    count: int
    is_cut: bool
    claim: Measure | None
    answer: Measure | None


def measure(seconds: Sequence[float]) -> Measure | None:
    """The median and the 90th percentile (nearest rank); None of nothing."""
    if not seconds:
        return None
    ranked = sorted(seconds)
    count = len(ranked)
    median = (ranked[(count - 1) // 2] + ranked[count // 2]) / 2
    return Measure(median, ranked[ceil(count * 0.9) - 1])


def team_times(group: str, *, by: str, zone: str, now: datetime) -> Times:
    """The team's times per `day` or `week` of the zone, of answers of the last thirty days."""
    answers = _answers(group, since=now - timedelta(days=DAYS), limit=SAMPLE + 1)
    is_cut = len(answers) > SAMPLE
    answers = answers[:SAMPLE]
    spans: dict[date, list[tuple[float, float]]] = defaultdict(list)
    local = ZoneInfo(zone)
    for answered_at, to_claim, to_answer in answers:
        spans[_start(answered_at.astimezone(local).date(), by)].append((to_claim, to_answer))
    last = _start(now.astimezone(local).date(), by)
    first = _start((now - timedelta(days=DAYS - 1)).astimezone(local).date(), by)
    step = timedelta(days=7 if by == "week" else 1)
    starts = [first + step * number for number in range((last - first) // step + 1)]
    return Times(
        spans=[
            Span(
                starts=start,
                count=len(spans[start]),
                claim=measure([claim for claim, _ in spans[start]]),
                answer=measure([answer for _, answer in spans[start]]),
            )
            for start in starts
        ],
        count=len(answers),
        is_cut=is_cut,
        claim=measure([claim for _, claim, _ in answers]),
        answer=measure([answer for _, _, answer in answers]),
    )


def usual_times(group: str, *, now: datetime) -> tuple[Measure | None, Measure | None]:
    """How long the team's last answers took to be claimed and given."""
    answers = _answers(group, since=now - timedelta(days=DAYS), limit=RECENT)
    return (
        measure([claim for _, claim, _ in answers]),
        measure([answer for _, _, answer in answers]),
    )


def _start(day: date, by: str) -> date:
    return day - timedelta(days=day.weekday()) if by == "week" else day


def _answers(group: str, *, since: datetime, limit: int) -> list[tuple[datetime, float, float]]:
    """Of the last answers when each was given, and the seconds to its claim and to itself."""
    parts = [
        Request.objects.filter(
            audience=audience, status=Request.Status.ANSWERED, changed_at__gte=since
        )
        for audience in audiences_with([f"group:{group}"])
    ]
    found = first_of(parts, NEWEST_FIRST, limit, "created_at", "claimed_at", "answered_at")
    answers = []
    for *_, created, claimed, answered in found:
        asked_at, answered_at = _moment(created), _moment(answered)
        claimed_at = answered_at if claimed is None else _moment(claimed)
        answers.append(
            (
                answered_at,
                max(0.0, (claimed_at - asked_at).total_seconds()),
                max(0.0, (answered_at - asked_at).total_seconds()),
            )
        )
    return answers


def _moment(given: Any) -> datetime:
    """A time as either database's driver gives it."""
    at: datetime = datetime.fromisoformat(given) if isinstance(given, str) else given
    return at if at.tzinfo else at.replace(tzinfo=UTC)
