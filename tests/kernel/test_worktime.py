"""Working time of a calendar, also where the clocks change."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.worktime import DEFAULT, MAX_HOLIDAYS, Calendar, after, read_calendar

BERLIN = ZoneInfo("Europe/Berlin")
OFFICE = Calendar(zone="Europe/Berlin")
ALL_DAY = Calendar(zone="Europe/Berlin", days=frozenset(range(1, 8)), opens=0, closes=24 * 60)


def berlin(text: str, fold: int = 0) -> int:
    local = datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)
    return round(local.timestamp() * 1000)


def local(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone(BERLIN).isoformat(" ", "minutes")


@pytest.mark.parametrize(
    ("asked", "hours", "due"),
    [
        ("2026-03-25 10:00", 2, "2026-03-25 12:00+01:00"),
        ("2026-03-25 16:00", 2, "2026-03-26 10:00+01:00"),
        # to the close, not to the next opening
        ("2026-03-25 09:00", 8, "2026-03-25 17:00+01:00"),
        ("2026-03-25 09:00", 8.5, "2026-03-26 09:30+01:00"),
        # before, after and between working days
        ("2026-03-25 03:00", 1, "2026-03-25 10:00+01:00"),
        ("2026-03-25 22:00", 1, "2026-03-26 10:00+01:00"),
        ("2026-03-21 12:00", 1, "2026-03-23 10:00+01:00"),
        # over the weekends on which the clocks change
        ("2026-03-27 16:00", 8, "2026-03-30 16:00+02:00"),
        ("2026-10-23 16:00", 8, "2026-10-26 16:00+01:00"),
    ],
)
def test_working_hours_are_counted_on_the_clock_of_the_zone(
    asked: str, hours: float, due: str
) -> None:
    assert local(after(OFFICE, berlin(asked), hours)) == due


@pytest.mark.parametrize(
    ("asked", "hours", "due"),
    [
        ("2026-03-28 12:00", 24, "2026-03-29 13:00+02:00"),
        ("2026-10-24 12:00", 24, "2026-10-25 11:00+01:00"),
        ("2026-03-29 00:00", 23, "2026-03-30 00:00+02:00"),
        ("2026-10-25 00:00", 25, "2026-10-26 00:00+01:00"),
    ],
)
def test_a_day_on_which_the_clocks_change_is_an_hour_shorter_or_longer(
    asked: str, hours: float, due: str
) -> None:
    assert local(after(ALL_DAY, berlin(asked), hours)) == due


def test_a_shift_over_the_hour_that_comes_twice_has_it_twice() -> None:
    night = Calendar(zone="Europe/Berlin", days=frozenset(range(1, 8)), opens=120, closes=150)

    assert after(night, berlin("2026-10-25 00:00"), 1.5) == berlin("2026-10-25 02:30", fold=1)
    assert local(after(night, berlin("2026-10-24 00:00"), 0.5)) == "2026-10-24 02:30+02:00"


def test_a_shift_in_the_hour_that_is_skipped_takes_place_an_hour_later_on_the_clock() -> None:
    night = Calendar(zone="Europe/Berlin", days=frozenset(range(1, 8)), opens=120, closes=150)

    assert local(after(night, berlin("2026-03-29 00:00"), 0.25)) == "2026-03-29 03:15+02:00"
    assert local(after(night, berlin("2026-03-29 00:00"), 1)) == "2026-03-30 02:30+02:00"


def test_holidays_are_no_working_days() -> None:
    eve = Calendar(zone="Europe/Berlin", holidays=frozenset({date(2026, 12, 25)}))

    assert local(after(eve, berlin("2026-12-24 16:00"), 2)) == "2026-12-28 10:00+01:00"


def test_a_calendar_of_almost_no_time_ends_within_ten_years() -> None:
    sunday_minute = Calendar(days=frozenset({7}), opens=0, closes=1)
    asked = berlin("2026-03-25 10:00")

    assert 0 < after(sunday_minute, asked, 2_000) - asked < 3_660 * 86_400_000


@given(
    st.integers(min_value=1_700_000_000_000, max_value=1_900_000_000_000),
    st.floats(min_value=0.01, max_value=200),
    st.floats(min_value=0.01, max_value=200),
)
def test_counting_in_two_parts_comes_to_the_same_time(at: int, first: float, then: float) -> None:
    first, then = round(first, 3), round(then, 3)
    whole = after(OFFICE, at, first + then)

    assert whole > at
    assert abs(after(OFFICE, after(OFFICE, at, first), then) - whole) <= 2


def test_a_calendar_survives_the_record() -> None:
    made = Calendar(
        zone="Asia/Kolkata", opens=570, closes=1440, holidays=frozenset({date(2027, 1, 1)})
    )

    assert read_calendar(made.to_json()) == made
    assert read_calendar({}) == DEFAULT


@pytest.mark.parametrize(
    ("given_", "named"),
    [
        ("Berlin", "calendar"),
        ({"hours": 8}, "calendar"),
        ({"zone": "Europe/Nowhere"}, "zone"),
        ({"zone": "../../etc/passwd"}, "zone"),
        ({"zone": "a\0b"}, "zone"),
        ({"zone": ""}, "zone"),
        ({"zone": "Europe"}, "zone"),
        ({"days": []}, "days"),
        ({"days": [0]}, "days"),
        ({"days": [True]}, "days"),
        ({"days": "12345"}, "days"),
        ({"opens": "9"}, "opens"),
        ({"opens": "09:60"}, "opens"),
        ({"closes": "24:01"}, "closes"),
        ({"opens": "17:00", "closes": "09:00"}, "closes"),
        ({"opens": "09:00", "closes": "09:00"}, "closes"),
        ({"holidays": ["25.12.2026"]}, "holidays"),
        ({"holidays": ["2026-01-01"] * (MAX_HOLIDAYS + 1)}, "holidays"),
    ],
)
def test_what_is_no_calendar_is_named(given_: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        read_calendar(given_)
