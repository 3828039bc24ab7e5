"""How long a team takes: medians and ninetieths per day and week, as a chart and as a table."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from gates import services
from gates.models import Request
from gates.teams import calendars, times
from gates.teams.time_chart import chart
from gates.teams.times import Measure, Span, measure, team_times
from runs.kernel.worktime import Calendar
from tests import factories
from tests.pages import Page, client_of, page_of

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def answered(at: datetime, *, claimed: float, took: float, who: str = "Release") -> Request:
    """A question that was answered at this time, and so many seconds after it was asked."""
    ada = factories.person("ada", groups=["Release", "Other"])
    row = factories.external_request(audience={"groups": [who]})
    services.submit(
        row.pk, principal=ada, token=None, digest=row.digest, response={"approved": True}
    )
    asked = at - timedelta(seconds=took)
    Request.objects.filter(pk=row.pk).update(
        created_at=asked,
        claimed_at=asked + timedelta(seconds=claimed),
        answered_at=at,
        changed_at=at,
    )
    return row


def test_the_ninetieth_is_what_nine_of_ten_did_not_exceed() -> None:
    assert measure([]) is None
    assert measure([5]) == Measure(5, 5)
    assert measure([1, 2]) == Measure(1.5, 2)
    assert measure(list(range(1, 11))) == Measure(5.5, 9)
    assert measure([3, 1, 2]) == Measure(2, 3)


@pytest.mark.django_db
def test_days_are_those_of_the_zone_and_of_this_team() -> None:
    answered(datetime(2026, 3, 28, 23, 30, tzinfo=UTC), claimed=60, took=120)
    answered(datetime(2026, 3, 29, 10, tzinfo=UTC), claimed=20, took=600)
    answered(datetime(2026, 3, 29, 11, tzinfo=UTC), claimed=40, took=1200)
    answered(datetime(2026, 3, 29, 11, tzinfo=UTC), claimed=1, took=1, who="Other")
    answered(datetime(2026, 2, 28, 11, tzinfo=UTC), claimed=1, took=1)

    def by_day(zone: str) -> dict[date, int]:
        found = team_times("Release", by="day", zone=zone, now=NOW)
        assert len(found.spans) == 30
        return {span.starts: span.count for span in found.spans if span.count}

    assert by_day("UTC") == {date(2026, 3, 28): 1, date(2026, 3, 29): 2}
    assert by_day("Europe/Berlin") == {date(2026, 3, 29): 3}
    weeks = team_times("Release", by="week", zone="UTC", now=NOW)
    assert [span.starts for span in weeks.spans][-1] == date(2026, 3, 30)
    (week,) = [span for span in weeks.spans if span.count]
    assert week.starts == date(2026, 3, 23)
    assert (week.claim, week.answer) == (Measure(40, 60), Measure(600, 1200))
    assert (weeks.count, weeks.is_cut, weeks.answer) == (3, False, Measure(600, 1200))


@pytest.mark.django_db
def test_only_the_last_answers_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "SAMPLE", 2)
    for day in (10, 11, 12):
        answered(datetime(2026, 3, day, tzinfo=UTC), claimed=1, took=day)

    found = team_times("Release", by="day", zone="UTC", now=NOW)

    assert (found.count, found.is_cut) == (2, True)
    assert [span.starts.day for span in found.spans if span.count] == [11, 12]


def test_a_chart_is_higher_where_it_took_longer() -> None:
    spans = [
        Span(starts=date(2026, 3, day), count=count, claim=None, answer=answer)
        for day, count, answer in (
            (1, 1, Measure(30, 30)),
            (2, 0, None),
            (3, 9, Measure(600, 86_400)),
            (4, 2, Measure(3_600, 40 * 86_400)),
        )
    ]
    drawn = chart(spans, "answer")

    low, middle, high = drawn["bars"]
    assert low["median"] > middle["median"] > high["median"]
    assert low["y"] > middle["y"] > high["y"]
    assert all(0 <= bar["y"] <= bar["median"] + 1 <= drawn["height"] for bar in drawn["bars"])
    assert [mark["text"] for mark in drawn["marks"]][:2] == ["1 s", "1 min"]
    assert drawn["marks"][-1]["text"] == "30 days"
    assert "9 of 10 within" in middle["title"]
    assert chart(spans, "claim")["bars"] == []


def page(who: Any = None, **query: str) -> Page:
    group = Group.objects.get(name="Release")
    client = client_of(who or factories.person("ada"))
    return page_of(client.get(reverse("gates:team-times", args=[group.pk]), query))


@pytest.mark.django_db
def test_the_page_draws_both_and_has_every_number_in_a_table() -> None:
    at = timezone.now() - timedelta(hours=1)
    answered(at, claimed=60, took=7_200)
    answered(at, claimed=180, took=10_800)

    shown = page()

    assert len(shown.all("svg", role="img")) == 2
    (row,) = [one for one in shown.all("tr") if one.children and one.children[0].tag == "th"][1:]
    cells = [cell.text for cell in row.children[1:]]
    assert cells == ["2", "2 min 00 s", "3 min 00 s", "2 h 30 min", "3 h 00 min"]
    assert len(page(by="week").all("svg", role="img")) == 2
    facts = page_of(client_of(factories.person("ada")).get(f"/teams/{_pk()}/"))
    assert (
        "claimed after 2 min 00 s , answered after 2 h 30 min"
        in facts.one(class_="team-facts").text
    )


@pytest.mark.django_db
def test_a_team_that_answered_nothing_is_told_what_will_be_here() -> None:
    factories.person("ada", groups=["Release"])

    shown = page()
    assert "appears here once" in shown.one(class_="empty").text
    assert not shown.all("svg", role="img")


@pytest.mark.django_db
def test_the_page_takes_as_many_statements_for_twenty_answers_as_for_one() -> None:
    answered(timezone.now(), claimed=1, took=2)
    calendars.set_calendar(Group.objects.get(name="Release"), Calendar(zone="Asia/Kolkata"))

    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert "Asia/Kolkata" in page().one("main").text
        return len(captured)

    statements()
    few = statements()
    for _ in range(19):
        answered(timezone.now(), claimed=1, took=2)
    assert statements() == few


def _pk() -> int:
    return Group.objects.get(name="Release").pk
