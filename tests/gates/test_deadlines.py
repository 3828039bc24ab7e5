"""The time of a question in its rows, over the API and on its page (interactions.md I30, I48)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from gates import services
from gates.access import NotVisible
from gates.errors import Expired
from gates.models import Request, Response
from runs import format_event, record, sweep
from runs import services as runs_services
from runs.archive.rebuild import rebuild
from runs.models import Event, Run
from runs.pages.event_lines import event_views
from runs.turns import folding
from tests import factories
from tests.gates.calls import DEFINITION, Api, code, person, program
from tests.gates.later import later
from tests.pages import client_of, page_of

pytestmark = pytest.mark.django_db

HOUR = 3_600
CHIEFS = {"users": ["oda"]}


def asked(**time: Any) -> Request:
    """An approval of a run; an hour to answer it."""
    return factories.pending_gate(**{"expires_in_seconds": HOUR, **time})


def answer(row: Request, who: Any = None, *, approved: bool = True) -> services.Receipt:
    return services.submit(
        row.pk,
        principal=who or factories.ada(),
        token=None,
        digest=row.digest,
        response={"approved": approved},
    )


def time_is_over(row: Request, seconds: float = HOUR) -> None:
    """The run wakes at its time, as a sweep finds it."""
    later(row.run_id, seconds)
    assert sweep.wake_due() == 1
    row.refresh_from_db()
    row.run.refresh_from_db()


def rows_are_the_fold(row: Request) -> bool:
    """The run's row, its steps and its questions are what the record makes of them."""
    return rebuild(row.run_id) == 0


def facts(row: Request, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = Event.objects.get(run=row.run_id, kind=kind).payload
    return found


def test_the_run_wakes_when_its_first_question_is_over_and_waits_until_then() -> None:
    row = asked(due_in_seconds=600)

    assert row.expires_at == row.created_at + timedelta(seconds=HOUR)
    assert row.due_at == row.created_at + timedelta(seconds=600)
    assert row.run.wake_at == row.expires_at
    assert row.run.status == Run.Status.WAITING
    assert sweep.wake_due() == 0


def test_nobody_answered_is_a_no_that_no_person_gave() -> None:
    row = asked()
    time_is_over(row)

    assert row.status == Request.Status.EXPIRED
    assert (row.answered_by, row.answered_at) == ("", None)
    assert row.closed_reason == f"expired at {row.expires_at:%Y-%m-%d %H:%M} UTC, nobody answered"
    assert not Response.objects.filter(request=row).exists()
    assert row.run.status == Run.Status.FAILED
    assert row.run.wake_at is None
    expired = Event.objects.get(run=row.run_id, kind="callback-expired")
    assert expired.actor == "system"
    assert "callback-submitted" not in factories.event_kinds(row.run)
    assert rows_are_the_fold(row)


def test_the_default_answer_lets_the_run_go_on() -> None:
    row = asked(on_expiry="answer", default_answer={"approved": True})
    time_is_over(row)

    assert row.status == Request.Status.EXPIRED
    assert not Response.objects.filter(request=row).exists()
    assert row.closed_reason.endswith("nobody answered; its default answer counts")
    assert row.run.attempts.get().path == ["release", "ship"]
    assert rows_are_the_fold(row)


def test_escalated_the_next_audience_finds_it_free_and_may_answer() -> None:
    row = asked(on_expiry="escalate", escalate_to=CHIEFS, escalate_seconds=60)
    services.claim(row.pk, principal=factories.ada())
    time_is_over(row)

    assert (row.status, row.holder) == (Request.Status.PENDING, "")
    assert row.audience.spec == CHIEFS
    assert row.expires_at == row.changed_at + timedelta(seconds=60)
    assert row.run.wake_at == row.expires_at
    assert facts(row, "callback-escalated")["audience"] == CHIEFS
    assert rows_are_the_fold(row)
    with pytest.raises(NotVisible):
        answer(row, factories.ada())
    assert answer(row, factories.operator()).next == "resumed"
    assert rows_are_the_fold(row)


def test_escalated_and_again_not_answered_it_is_a_no() -> None:
    row = asked(on_expiry="escalate", escalate_to=CHIEFS, escalate_seconds=60)
    time_is_over(row)
    time_is_over(row, HOUR + 61)

    assert row.status == Request.Status.EXPIRED
    assert row.run.status == Run.Status.FAILED
    assert rows_are_the_fold(row)


def test_left_open_it_is_overdue_and_still_to_be_answered() -> None:
    row = asked(on_expiry="stay-open")
    ends = row.expires_at
    time_is_over(row)

    assert (row.status, row.due_at, row.expires_at) == (Request.Status.PENDING, ends, None)
    assert row.run.wake_at is None
    assert services.expire_due() == 0
    assert rows_are_the_fold(row)
    assert answer(row).next == "resumed"


def test_a_reminder_is_recorded_once_and_changes_nothing() -> None:
    row = asked(due_in_seconds=600, remind_before_seconds=[60])
    assert row.run.wake_at == row.created_at + timedelta(seconds=540)
    time_is_over(row, 541)

    assert row.status == Request.Status.PENDING
    assert row.run.wake_at == row.expires_at
    assert factories.event_kinds(row.run).count("callback-reminded") == 1
    assert answer(row).next == "resumed"
    assert rows_are_the_fold(row)


def test_an_answer_that_comes_too_late_finds_the_question_expired() -> None:
    row = asked()
    later(row.run_id, HOUR)

    with pytest.raises(Expired, match="until"):
        answer(row)

    row.refresh_from_db()
    assert row.status == Request.Status.EXPIRED
    assert factories.event_kinds(row.run)[-1] == "callback-expired"
    assert "callback-claimed" not in factories.event_kinds(row.run)
    assert Run.objects.get(pk=row.run_id).status == Run.Status.FAILED


def test_whoever_held_it_at_the_end_is_refused_as_well() -> None:
    row = asked()
    token = services.claim(row.pk, principal=factories.ada()).token
    later(row.run_id, HOUR)

    with pytest.raises(Expired):
        services.submit(
            row.pk,
            principal=factories.ada(),
            token=token,
            digest=row.digest,
            response={"approved": True},
        )
    row.refresh_from_db()
    assert (row.status, row.holder) == (Request.Status.EXPIRED, "")
    assert rows_are_the_fold(row)


def test_a_cancel_at_the_end_finds_the_question_expired_and_still_cancels() -> None:
    gate = asked(target=None)
    with record.turn(gate.run_id) as turn:
        turn.append("log", (), {"message": "still here"})
    later(gate.run_id, HOUR - 1)
    runs_services.cancel_run(gate.run_id, actor="user:0")
    gate.refresh_from_db()
    assert gate.status == Request.Status.CANCELLED
    assert Run.objects.get(pk=gate.run_id).wake_at is None

    later(gate.run_id, HOUR)
    with pytest.raises(Expired):
        services.submit(
            gate.pk,
            principal=factories.ada(),
            token=None,
            digest=gate.digest,
            response={"approved": True},
            even_cancelled=True,
        )
    gate.refresh_from_db()
    assert gate.status == Request.Status.EXPIRED
    assert rows_are_the_fold(gate)


def test_the_sweep_finds_a_question_whose_run_nobody_wakes() -> None:
    row = asked()
    Run.objects.filter(pk=row.run_id).update(wake_at=None)
    later(row.run_id, HOUR)
    Request.objects.filter(pk=row.pk).update(expires_at=timezone.now() - timedelta(seconds=1))

    assert services.expire_due() == 1
    assert services.expire_due() == 0
    row.refresh_from_db()
    assert row.status == Request.Status.EXPIRED


# --- questions of programs -----------------------------------------------------------------------


@pytest.fixture
def bot() -> Api:
    return program("release-bot")


def ask(bot: Api, **changes: Any) -> Any:
    body = {**DEFINITION, "stream": "s", "audience": factories.FOR_ADA, **changes}
    return bot.post("/requests", body)


def over(told: Any, seconds: float) -> Request:
    row = Request.objects.select_related("run").get(pk=told.json()["id"])
    time_is_over(row, seconds)
    return row


def test_a_programs_question_expires_by_itself_and_says_so(bot: Api) -> None:
    told = ask(
        bot,
        dueInSeconds=30,
        expiresInSeconds=60.5,
        onExpiry="answer",
        defaultAnswer={"approved": False},
    )
    assert told.status_code == 201, told.content
    body = told.json()
    created, expires = (datetime.fromisoformat(body[name]) for name in ("createdAt", "expiresAt"))
    assert expires - created == timedelta(seconds=60.5)
    assert body["onExpiry"] == "answer"

    row = over(told, 61)
    seen = bot.get(f"/requests/{row.pk}").json()

    assert seen["status"] == "expired"
    assert seen["defaultAnswer"] == {"approved": False}
    assert (seen["responses"], seen["answeredAt"], seen["answeredBy"]) == ([], None, None)
    assert "nobody answered; its default answer counts" in seen["closedReason"]
    assert row.run.status == Run.Status.RUNNING
    history = bot.get(f"/requests/{row.pk}/history").json()["items"]
    assert [(one["kind"], one["actor"]) for one in history][-1] == ("callback-expired", "system")


def test_an_answer_after_the_end_is_410_and_changes_nothing(bot: Api) -> None:
    told = ask(bot, expiresInSeconds=60)
    row = Request.objects.get(pk=told.json()["id"])
    later(row.run_id, 60)
    body = {"digest": row.digest, "response": {"approved": True}}

    for path, sent in (("submit", body), ("claim", {}), ("submit", body)):
        refused = person(factories.ada()).post(f"/requests/{row.pk}/{path}", sent)
        assert code(refused) == (410, "expired")

    assert not Response.objects.exists()
    assert factories.event_kinds(row.run).count("callback-expired") == 1


def test_asked_anew_after_its_end_the_clock_starts_anew(bot: Api) -> None:
    told = ask(bot, expiresInSeconds=60)
    row = over(told, 61)
    again = ask(bot, expiresInSeconds=60)

    assert again.status_code == 201
    assert again.json()["id"] == told.json()["id"]
    row.refresh_from_db()
    assert row.status == Request.Status.PENDING
    assert row.closed_reason == ""
    assert row.expires_at is not None
    assert row.expires_at > datetime.fromisoformat(told.json()["expiresAt"]) + timedelta(seconds=59)
    assert rows_are_the_fold(row)


def test_the_same_open_question_again_is_not_given_more_time(bot: Api) -> None:
    first = ask(bot, expiresInSeconds=60)
    again = ask(bot, expiresInSeconds=600)

    assert again.status_code == 200
    assert again.json()["expiresAt"] == first.json()["expiresAt"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"expiresInSeconds": 0}, "expiresInSeconds"),
        ({"expiresInSeconds": 1e12}, "expiresInSeconds"),
        ({"expiresInSeconds": 5, "expiresAt": "2126-01-01T00:00:00Z"}, "expiresInSeconds"),
        ({"onExpiry": "reject"}, "onExpiry"),
        ({"expiresInSeconds": 5, "onExpiry": "later"}, "onExpiry"),
        ({"expiresInSeconds": 5, "onExpiry": "answer"}, "defaultAnswer"),
        ({"expiresInSeconds": 5, "defaultAnswer": {"approved": True}}, "defaultAnswer"),
        (
            {"expiresInSeconds": 5, "onExpiry": "answer", "defaultAnswer": {"approved": "yes"}},
            "defaultAnswer",
        ),
        ({"expiresInSeconds": 5, "onExpiry": "escalate"}, "escalateTo"),
        (
            {"expiresInSeconds": 5, "onExpiry": "escalate", "escalateTo": {"users": []}},
            "escalateTo",
        ),
        ({"expiresInSeconds": 5, "escalateSeconds": 5}, "escalateSeconds"),
        ({"remindBeforeSeconds": [5]}, "remindBeforeSeconds"),
    ],
)
def test_a_time_that_cannot_be_is_422_with_its_field(
    bot: Api, wrong: dict[str, Any], field: str
) -> None:
    refused = ask(bot, **wrong)

    assert refused.status_code == 422, refused.content
    assert refused.json()["error"]["field"] == field
    assert not Request.objects.exists()


# --- the page ------------------------------------------------------------------------------------


def test_the_page_says_until_when_and_what_then() -> None:
    row = asked(on_expiry="escalate", escalate_to=CHIEFS)
    page = page_of(client_of(factories.ada()).get(row.get_absolute_url()))

    assert (
        f"expires {row.expires_at:%-d %b %Y, %H:%M} UTC, then others are asked"
        in page.by_id(f"gate-{row.pk}").text
    )


def test_the_page_of_an_expired_question_names_no_person() -> None:
    row = asked()
    time_is_over(row)
    page = page_of(client_of(factories.ada()).get(row.get_absolute_url()))

    words = f"expired at {row.expires_at:%Y-%m-%d %H:%M} UTC, nobody answered"
    assert f"This question {words}." in page.by_id(f"gate-{row.pk}-decision").text
    assert [one.text for one in page.all(class_="timeline-what")][-1] == "time was over"
    assert not page.all("form", id=f"gate-{row.pk}-answer")


def test_a_late_click_on_the_page_is_told_that_it_is_over() -> None:
    row = asked()
    later(row.run_id, HOUR)
    told = client_of(factories.ada()).post(
        reverse("gates:claim", args=[row.pk]), headers={"HX-Request": "true"}
    )

    assert told.status_code == 410
    assert "could be answered until" in page_of(told).by_id(f"gate-{row.pk}-decision").text
    assert not Response.objects.exists()


def test_a_time_of_the_author_is_kept_to_the_millisecond() -> None:
    ends = datetime(2126, 3, 31, 14, 0, 0, 123_000, tzinfo=UTC)
    row = asked(expires_in_seconds=None, expires_at=ends)

    assert row.expires_at == ends
    assert row.run.wake_at == ends


def test_the_record_in_words_says_that_it_expired_and_that_nothing_replaced_it() -> None:
    row = asked()
    time_is_over(row)
    events = [folding.to_event(one) for one in Event.objects.filter(run=row.run_id).order_by("seq")]
    lines = [line for line in event_views(events) if line.kind.startswith("callback-")]

    assert [line.words for line in lines if not line.quiet] == [
        "question asked",
        "question expired",
    ]
    assert lines[-1].text == f"expired at {row.expires_at:%Y-%m-%d %H:%M} UTC, nobody answered"
    told = [format_event(event.to_wire()) for event in events]
    assert any("question expired, nobody answered" in line for line in told)
    assert not any("replaced by" in line for line in told)
