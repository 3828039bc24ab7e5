from __future__ import annotations

from datetime import UTC, datetime

import pytest

from runs import fn_job, schedules, tasks
from runs.models import Run
from tests import flows

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """The database's time, which a test sets."""
    times = [datetime(2026, 1, 1, 2, 30, tzinfo=UTC)]
    monkeypatch.setattr(schedules, "database_now", lambda: times[-1])
    return times


def nightly() -> str:
    return flows.offer(fn_job("nightly", lambda ctx: "done"))


def test_a_message_that_comes_twice_starts_one_run(clock: list[datetime]) -> None:
    name = nightly()

    for _ in range(2):
        tasks.start(name, once_per="day")
    clock.append(datetime(2026, 1, 1, 23, 59, tzinfo=UTC))
    tasks.start(name, once_per="day")
    assert Run.objects.count() == 1

    clock.append(datetime(2026, 1, 2, 2, 30, tzinfo=UTC))
    tasks.start(name, once_per="day")
    assert Run.objects.count() == 2


@pytest.mark.parametrize(("once_per", "count"), [("day", 1), ("hour", 2), ("minute", 3), ("", 4)])
def test_the_span_says_how_often(clock: list[datetime], once_per: str, count: int) -> None:
    name = nightly()

    for hour, minute, second in ((2, 30, 0), (2, 30, 40), (2, 31, 0), (3, 0, 0)):
        clock.append(datetime(2026, 1, 1, hour, minute, second, tzinfo=UTC))
        schedules.start(name, once_per=once_per)

    assert Run.objects.count() == count


def test_the_record_says_that_a_schedule_started_it() -> None:
    run = schedules.start(nightly(), {}, once_per="hour")

    [first] = flows.events(run, "run:start")
    assert (first.actor, first.surface) == ("system", "schedule")


def test_a_span_that_is_none_starts_nothing() -> None:
    with pytest.raises(ValueError, match="not 'week'"):
        schedules.start(nightly(), once_per="week")
    assert not Run.objects.exists()
