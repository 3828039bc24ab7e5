"""The working time of a team, and the question that is counted by it."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.urls import reverse

from gates.models import Request, Team
from gates.teams import calendars
from runs.archive.rebuild import rebuild
from runs.kernel.worktime import Calendar, after
from runs.models import Event
from tests import factories
from tests.gates.calls import DEFINITION, program
from tests.gates.test_deadlines import time_is_over
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db

BERLIN = Calendar(
    zone="Europe/Berlin",
    days=frozenset(range(1, 8)),
    opens=0,
    closes=24 * 60,
    holidays=frozenset({date(2020, 1, 1)}),
)
EVENING = Calendar(zone="Asia/Kolkata", days=frozenset({6, 7}), opens=20 * 60, closes=24 * 60)


def team(name: str = "Release", calendar: Calendar | None = BERLIN) -> Group:
    group, _ = Group.objects.get_or_create(name=name)
    calendars.set_calendar(group, calendar)
    return group


def asked(**time: Any) -> Request:
    given = {"audience": {"groups": ["Nobody", "Release", "Other"]}, **time}
    return factories.pending_gate(**given)


def routed(row: Request) -> dict[str, Any]:
    found: dict[str, Any] = Event.objects.get(run=row.run_id, kind="callback-routed").payload
    return found


def ms(at: datetime | None) -> int:
    assert at is not None
    return round(at.timestamp() * 1000)


def test_hours_are_counted_by_the_first_team_that_has_said_when_it_works() -> None:
    team("Other", EVENING)
    team()
    row = asked(due_in_business_hours=4, expires_in_business_hours=30)

    assert row.due_at == row.created_at + timedelta(hours=4)
    assert ms(row.expires_at) == after(BERLIN, ms(row.created_at), 30)
    assert routed(row)["calendar"] == BERLIN.to_json()
    assert routed(row)["calendarOf"] == "Release"
    assert row.run.wake_at == row.expires_at
    assert rebuild(row.run_id) == 0


def test_a_later_change_of_the_team_moves_no_question_that_was_asked() -> None:
    group = team()
    row = asked(
        due_in_business_hours=4,
        expires_in_business_hours=8,
        on_expiry="escalate",
        escalate_to=[{"groups": ["Leads"]}, {"users": ["oda"]}],
    )
    calendars.set_calendar(group, EVENING)
    before = (row.due_at, row.expires_at)
    assert rebuild(row.run_id) == 0
    row.refresh_from_db()
    assert (row.due_at, row.expires_at) == before

    time_is_over(row, 8 * 3_600)

    assert row.expires_at == row.changed_at + timedelta(hours=8)
    assert asked(due_in_business_hours=4).due_at != row.due_at


def test_without_a_team_that_has_one_the_default_calendar_counts() -> None:
    row = asked(due_in_business_hours=1)

    assert routed(row)["calendarOf"] is None
    assert ms(row.due_at) == after(Calendar(), ms(row.created_at), 1)


def test_an_authors_own_calendar_comes_before_the_teams() -> None:
    team()
    row = asked(due_in_business_hours=1, calendar=EVENING.to_json())

    assert ms(row.due_at) == after(EVENING, ms(row.created_at), 1)
    assert "calendarOf" not in routed(row)


def test_a_question_of_a_program_is_counted_by_the_team_as_well() -> None:
    team()
    bot = program("release-bot")
    body = {**DEFINITION, "stream": "s", "audience": {"groups": ["Release"]}}
    told = bot.post("/requests", {**body, "dueInBusinessHours": 2})

    assert told.status_code == 201, told.content
    row = Request.objects.get(pk=told.json()["id"])
    assert row.due_at == row.created_at + timedelta(hours=2)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"dueInBusinessHours": 0}, "dueInBusinessHours"),
        ({"dueInBusinessHours": 2_001}, "dueInBusinessHours"),
        ({"dueInSeconds": 5, "dueInBusinessHours": 1}, "dueInBusinessHours"),
        ({"calendar": {}}, "calendar"),
        ({"dueInBusinessHours": 1, "calendar": {"zone": "Mars"}}, "calendar"),
        (
            {"expiresInSeconds": 5, "onExpiry": "escalate", "escalateTo": []},
            "escalateTo",
        ),
        (
            {"expiresInSeconds": 5, "onExpiry": "escalate", "escalateTo": [{}]},
            "escalateTo",
        ),
        (
            {
                "expiresInSeconds": 5,
                "onExpiry": "escalate",
                "escalateTo": [{"groups": ["A"]}],
                "escalateSeconds": [1, 2],
            },
            "escalateSeconds",
        ),
        (
            {
                "expiresInSeconds": 5,
                "onExpiry": "escalate",
                "escalateTo": {"groups": ["A"]},
                "escalateSeconds": 5,
                "escalateBusinessHours": 1,
            },
            "escalateBusinessHours",
        ),
    ],
)
def test_working_time_that_cannot_be_is_422_with_its_field(
    wrong: dict[str, Any], field: str
) -> None:
    body = {**DEFINITION, "stream": "s", "audience": factories.FOR_ADA}
    refused = program("release-bot").post("/requests", {**body, **wrong})

    assert refused.status_code == 422, refused.content
    assert refused.json()["error"]["field"] == field


def test_each_level_is_asked_in_turn_and_finds_the_question_free() -> None:
    row = asked(
        expires_in_seconds=60,
        on_expiry="escalate",
        escalate_to=[{"users": ["eve"]}, {"users": ["oda"]}],
        escalate_seconds=[120, 180],
    )
    seen = []
    for seconds in (60, 180, 360):
        time_is_over(row, seconds)
        seen.append((row.status, row.audience.spec, row.routing["onExpiry"]))
        assert rebuild(row.run_id) == 0

    assert seen == [
        ("pending", {"users": ["eve"]}, "escalate"),
        ("pending", {"users": ["oda"]}, "reject"),
        ("expired", {"users": ["oda"]}, "reject"),
    ]


# --- the page on which a team says when it works -------------------------------------------------

WORK = {
    "zone": "Europe/Berlin",
    "days": ["1", "2", "3"],
    "opens": "08:30",
    "closes": "16:00",
    "holidays": "2026-12-25\n2026-12-24",
}


def address(group: Group) -> str:
    return reverse("gates:team-calendar", args=[group.pk])


def chief(*, member: bool = True) -> Any:
    groups = ["Release"] if member else []
    perms = ["gates.change_team"] + ([] if member else ["gates.view_request"])
    return client_of(factories.person("kim", groups=groups, perms=perms))


def test_who_may_change_the_team_says_when_it_works() -> None:
    group = team(calendar=None)
    assert page_of(chief().get(address(group))).all("form", action=address(group))

    told = chief().post(address(group), WORK)

    assert told.status_code == 302
    assert calendars.calendar_of(group) == Calendar(
        zone="Europe/Berlin",
        days=frozenset({1, 2, 3}),
        opens=510,
        closes=960,
        holidays=frozenset({date(2026, 12, 24), date(2026, 12, 25)}),
    )
    log = LogEntry.objects.get()
    assert log.user.username == "kim"
    assert "Mon-Wed 08:30-16:00 Europe/Berlin" in log.change_message
    shown = page_of(chief().get(reverse("gates:team", args=[group.pk])))
    assert "Mon-Wed 08:30-16:00 Europe/Berlin, 2 days off" in shown.one("main").text


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"zone": "Mars"}, "time zone"),
        ({"days": []}, "required"),
        ({"opens": "9"}, "time of the day"),
        ({"closes": "08:30"}, "later than opens"),
        ({"holidays": "Christmas"}, "2026-12-25"),
        ({"holidays": "\n".join(["2026-01-01"] * 401)}, "400"),
    ],
)
def test_a_calendar_that_cannot_be_is_said_on_its_field_and_changes_nothing(
    wrong: dict[str, Any], words: str
) -> None:
    group = team()
    told = chief().post(address(group), {**WORK, **wrong})

    assert told.status_code == 422
    assert words in page_of(told).one("main").text
    assert calendars.calendar_of(group) == BERLIN


def test_a_member_without_the_right_may_look_and_others_do_not_know_the_team() -> None:
    group = team()
    member = client_of(factories.person("mia", groups=["Release"]))
    assert member.get(address(group)).status_code == 403
    assert member.post(address(group), WORK).status_code == 403
    for stranger in (factories.cyd(), factories.person("kay", perms=["gates.change_team"])):
        assert client_of(stranger).post(address(group), WORK).status_code == 404
    assert chief(member=False).get(address(group)).status_code == 200
    assert calendars.calendar_of(group) == BERLIN


def test_a_calendar_can_be_taken_back() -> None:
    group = team()
    assert chief().post(address(group), {"none": "on"}).status_code == 302

    assert calendars.calendar_of(group) is None
    assert Team.objects.get(group=group).calendar is None


def test_a_zone_that_is_known_no_longer_counts_as_none() -> None:
    group = team()
    Team.objects.filter(group=group).update(calendar={"zone": "Mars/Olympus"})

    assert calendars.calendar_of(group) is None
    assert routed(asked(due_in_business_hours=1))["calendarOf"] is None
