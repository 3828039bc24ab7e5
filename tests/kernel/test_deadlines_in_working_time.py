"""The time of a question in working hours: the calendar that counts them stands in the record."""

from __future__ import annotations

from typing import Any

from runs.kernel import clocks
from runs.kernel.events import EventKind
from runs.kernel.worktime import read_calendar
from tests.kernel.puppet import Puppet
from tests.kernel.shapes import ask, graph, node

NIGHTS = {"zone": "UTC", "days": [1, 2, 3, 4, 5, 6, 7], "opens": "02:00", "closes": "03:00"}


def hours(**routing: Any) -> Puppet:
    run = Puppet(graph(node("ok", job=ask(routing=routing))))
    run.settle()
    return run


def test_working_hours_are_counted_by_the_calendar_that_is_given_and_stays_in_the_record() -> None:
    run = hours(dueInBusinessHours=0.5, expiresInBusinessHours=1.5, calendar=NIGHTS)

    (routed,) = run.kinds(EventKind.ROUTED)
    assert routed.fields["dueAt"] == "1970-01-01T02:30:00.000Z"
    assert routed.fields["expiresAt"] == "1970-01-02T02:30:00.000Z"
    assert routed.fields["calendar"] == NIGHTS
    assert not clocks.asks_for_calendar(routed.fields)


def test_without_a_calendar_it_is_monday_to_friday_nine_to_five_until_a_team_says_otherwise() -> (
    None
):
    run = hours(expiresInBusinessHours=1, onExpiry="reject")

    (routed,) = run.kinds(EventKind.ROUTED)
    # The epoch was a Thursday.
    assert routed.fields["expiresAt"] == "1970-01-01T10:00:00.000Z"
    assert clocks.asks_for_calendar(routed.fields)
    by_team = clocks.in_working_time(routed.fields, routed.ts, "Night watch", read_calendar(NIGHTS))
    assert by_team["expiresAt"] == "1970-01-01T03:00:00.000Z"
    assert by_team["calendarOf"] == "Night watch"
    assert not clocks.asks_for_calendar(by_team)


def test_the_next_audience_has_as_many_working_hours_as_were_said() -> None:
    run = hours(
        expiresInBusinessHours=1,
        onExpiry="escalate",
        escalateTo=[{"groups": ["A"]}, {"groups": ["B"]}],
        calendar=NIGHTS,
    )
    run.waits()
    run.waits()

    ends = [event.fields["expiresAt"] for event in run.kinds(EventKind.ESCALATED)]
    assert ends == ["1970-01-02T03:00:00.000Z", "1970-01-03T03:00:00.000Z"]
    half = hours(
        expiresInSeconds=60,
        onExpiry="escalate",
        escalateTo={"groups": ["A"]},
        escalateBusinessHours=0.5,
        calendar=NIGHTS,
    )
    half.waits()
    (escalated,) = half.kinds(EventKind.ESCALATED)
    assert escalated.fields["expiresAt"] == "1970-01-01T02:30:00.000Z"


def test_a_calendar_that_can_no_longer_be_read_keeps_no_run_from_going_on() -> None:
    run = hours(expiresInBusinessHours=1, calendar={"zone": "Mars/Olympus"})

    assert run.kinds(EventKind.ROUTED)[0].fields["expiresAt"] == "1970-01-01T10:00:00.000Z"
