"""Working time: the instant at which so many hours of a calendar's working time are over.

A calendar is data (peers.md E5): it goes into the record with the question it was used for, beside
the time that came of it, so neither a change of the team's hours nor of a zone's rules moves a
question that was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

MAX_HOURS: Final = 2_000
MAX_HOLIDAYS: Final = 400
MAX_DAYS: Final = 3_653
DAY_MINUTES: Final = 24 * 60
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_FIELDS: Final = frozenset({"zone", "days", "opens", "closes", "holidays"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """When somebody works: Monday is 1, `opens` and `closes` are minutes of the local day."""

    zone: str = "UTC"
    days: frozenset[int] = frozenset({1, 2, 3, 4, 5})
    opens: int = 9 * 60
    closes: int = 17 * 60
    holidays: frozenset[date] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """As it stands in the record: `{zone, days, opens, closes, holidays}`."""
        return {
            "zone": self.zone,
            "days": sorted(self.days),
            "opens": clock_text(self.opens),
            "closes": clock_text(self.closes),
            "holidays": sorted(day.isoformat() for day in self.holidays),
        }

    def works_on(self, day: date) -> bool:
        return day.isoweekday() in self.days and day not in self.holidays


DEFAULT: Final = Calendar()


def read_calendar(given: object) -> Calendar:
    """The calendar of `{zone, days, opens, closes, holidays}`; ValueError names what is wrong.

    What is left out is as in `DEFAULT`: Monday to Friday, 09:00 to 17:00, UTC.
    """
    if not isinstance(given, Mapping) or not set(given) <= _FIELDS:
        raise ValueError(f"a calendar has {', '.join(sorted(_FIELDS))}.")
    days = _days(given.get("days", sorted(DEFAULT.days)))
    opens = minutes_of("opens", given.get("opens", clock_text(DEFAULT.opens)))
    closes = minutes_of("closes", given.get("closes", clock_text(DEFAULT.closes)))
    if not opens < closes:
        raise ValueError("closes is later than opens, on the same day.")
    return Calendar(
        zone=zone_name(given.get("zone", DEFAULT.zone)),
        days=days,
        opens=opens,
        closes=closes,
        holidays=_holidays(given.get("holidays", ())),
    )


def zone_name(given: object) -> str:
    """A name of the time zone database; ValueError for anything else."""
    if isinstance(given, str) and 0 < len(given) <= 64:
        try:
            ZoneInfo(given)
        except (ValueError, OSError):  # what is not found is a KeyError of zoneinfo's own
            pass
        except KeyError:
            pass
        else:
            return given
    raise ValueError('zone is the name of a time zone, such as "Europe/Berlin".')


def minutes_of(name: str, given: object) -> int:
    """`HH:MM` as minutes of the day, up to 24:00; ValueError for anything else."""
    if isinstance(given, str):
        hours, colon, minutes = given.partition(":")
        if colon and all(part.isascii() and part.isdigit() for part in (hours, minutes)):
            found = int(hours[:3]) * 60 + int(minutes[:3])
            if int(minutes[:3]) < 60 and found <= DAY_MINUTES:
                return found
    raise ValueError(f"{name} is a time of the day, such as 09:00.")


def clock_text(minutes: int) -> str:
    """Minutes of the day as `HH:MM`."""
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _days(given: Any) -> frozenset[int]:
    days = given if isinstance(given, list | tuple) else ()
    whole = all(isinstance(day, int) and not isinstance(day, bool) for day in days)
    if not days or not whole or not all(1 <= day <= 7 for day in days):
        raise ValueError("days lists days of the week, from 1 for Monday to 7 for Sunday.")
    return frozenset(days)


def _holidays(given: Any) -> frozenset[date]:
    if not isinstance(given, list | tuple) or len(given) > MAX_HOLIDAYS:
        raise ValueError(f"holidays lists at most {MAX_HOLIDAYS} days such as 2026-12-25.")
    try:
        return frozenset(date.fromisoformat(day) for day in given)
    except (TypeError, ValueError):
        raise ValueError("holidays lists days such as 2026-12-25.") from None


def after(calendar: Calendar, at: int, hours: float) -> int:
    """When so many hours of working time have passed since `at`, both in ms since the epoch.

    Hours are real ones: where the clocks change within the working day it has one more or one
    less. A count that ends with a working day ends at its close, not at the next opening. It never
    lies more than ten years away.
    """
    zone = ZoneInfo(calendar.zone)
    left = round(hours * 3_600_000)
    day = (_EPOCH + timedelta(milliseconds=at)).astimezone(zone).date()
    for _ in range(MAX_DAYS):
        if calendar.works_on(day):
            begins = max(at, _instant(day, calendar.opens, zone, fold=0))
            worked = _instant(day, calendar.closes, zone, fold=1) - begins
            if left <= worked:
                return begins + left
            left -= max(0, worked)
        day += timedelta(days=1)
    return at + MAX_DAYS * DAY_MINUTES * 60_000


def _instant(day: date, minutes: int, zone: ZoneInfo, *, fold: int) -> int:
    """A local time as ms since the epoch.

    Of a time that comes twice `fold` says which, one that is skipped counts from the clock of
    before the change.
    """
    if minutes == DAY_MINUTES:
        day, minutes = day + timedelta(days=1), 0
    local = datetime.combine(day, time(*divmod(minutes, 60)), tzinfo=zone)
    first, second = (local.replace(fold=which).astimezone(UTC) for which in (0, 1))
    chosen = second if fold and second > first else first
    return (chosen - _EPOCH) // _MS
