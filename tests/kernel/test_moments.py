"""A moment of a row and of an event are the same moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.moments import milliseconds, moment

# What a row can hold: year 1 to the last day of 9999.
TIMES = st.integers(-62_135_596_800_000, 253_402_300_799_999)


@given(TIMES)
def test_the_milliseconds_of_a_moment_are_those_it_was_made_of(ms: int) -> None:
    assert milliseconds(moment(ms)) == ms


@given(TIMES, st.integers(0, 999))
def test_what_is_left_of_a_millisecond_is_dropped(ms: int, micro: int) -> None:
    assert milliseconds(moment(ms) + timedelta(microseconds=micro)) == ms


def test_a_moment_is_the_same_wherever_its_clock_stands() -> None:
    there = datetime(2026, 1, 1, 2, 0, 0, 999_600, tzinfo=timezone(timedelta(hours=2)))

    assert milliseconds(there) == 1_767_225_600_999
    assert moment(1_767_225_600_999) == datetime(2026, 1, 1, 0, 0, 0, 999_000, tzinfo=UTC)


def test_a_time_past_the_calendar_is_no_moment() -> None:
    with pytest.raises(OverflowError):
        moment(10**18)
