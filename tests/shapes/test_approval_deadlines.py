"""What an author may say about the time of a question, and what is no such thing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from runs.kernel.errors import DeclarationError
from runs.kernel.graph import LeafShape
from runs.shapes.approval import approval

ZONED = datetime(2126, 3, 31, 16, 0, 0, 5_000, tzinfo=timezone(timedelta(hours=2)))

ESCALATED: dict[str, Any] = {
    "expires_in_seconds": 1,
    "on_expiry": "escalate",
    "escalate_to": {"groups": ["A"]},
}


def routing(**time: Any) -> dict[str, Any]:
    shape = approval("ok", "Ship it?", **time).shape
    assert isinstance(shape, LeafShape)
    assert shape.ask is not None
    return dict(shape.ask.routing)


def test_a_question_has_no_end_unless_its_author_says_so() -> None:
    assert routing() == {}
    assert routing(due_in_seconds=60) == {"dueInSeconds": 60}


def test_an_end_without_more_is_a_no() -> None:
    assert routing(expires_in_seconds=90.5) == {"expiresInSeconds": 90.5, "onExpiry": "reject"}


def test_times_of_the_author_go_into_the_record_in_utc() -> None:
    said = routing(due_at=ZONED, expires_at=ZONED.astimezone(UTC) + timedelta(hours=1))

    assert said["dueAt"] == "2126-03-31T14:00:00.005Z"
    assert said["expiresAt"] == "2126-03-31T15:00:00.005Z"


def test_several_levels_and_working_hours_are_kept_as_said() -> None:
    said = routing(
        due_in_business_hours=4,
        expires_in_business_hours=8,
        on_expiry="escalate",
        escalate_to=[{"groups": ["Leads"]}, {"users": ["oda"]}],
        escalate_business_hours=[2, 4.5],
        calendar={"zone": "Europe/Berlin", "opens": "08:00"},
    )

    assert said["escalateTo"] == ({"groups": ("Leads",)}, {"users": ("oda",)})
    assert said["escalateBusinessHours"] == (2, 4.5)
    assert (said["dueInBusinessHours"], said["expiresInBusinessHours"]) == (4, 8)
    assert said["calendar"] == {
        "zone": "Europe/Berlin",
        "days": (1, 2, 3, 4, 5),
        "opens": "08:00",
        "closes": "17:00",
        "holidays": (),
    }


def test_everything_said_about_the_end_is_kept() -> None:
    assert routing(
        expires_in_seconds=60,
        on_expiry="answer",
        default_answer={"approved": True, "note": "quiet"},
        remind_before_seconds=[30, 5],
    ) == {
        "expiresInSeconds": 60,
        "onExpiry": "answer",
        "defaultAnswer": {"approved": True, "note": "quiet"},
        "remindBeforeSeconds": (30, 5),
    }
    said = routing(
        expires_in_seconds=60,
        on_expiry="escalate",
        escalate_to={"groups": ["Chiefs"]},
        escalate_seconds=5,
    )
    assert said["escalateTo"] == {"groups": ("Chiefs",)}
    assert said["escalateSeconds"] == 5


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"due_in_seconds": 0}, "due_in_seconds"),
        ({"due_in_seconds": True}, "due_in_seconds"),
        ({"due_in_seconds": float("nan")}, "due_in_seconds"),
        ({"expires_in_seconds": -1}, "expires_in_seconds"),
        ({"expires_in_seconds": 10**12}, "expires_in_seconds"),
        ({"expires_in_seconds": "60"}, "expires_in_seconds"),
        ({"due_at": datetime(2126, 1, 1)}, "zone"),  # noqa: DTZ001 - the fault that is refused
        ({"expires_at": "2126-01-01T00:00:00Z"}, "zone"),
        ({"expires_at": ZONED, "expires_in_seconds": 1}, "takes one of"),
        ({"on_expiry": "answer", "default_answer": {"approved": True}}, "has no end"),
        ({"expires_in_seconds": 1, "on_expiry": "later"}, "on_expiry"),
        ({"expires_in_seconds": 1, "on_expiry": "answer"}, "default_answer"),
        ({"expires_in_seconds": 1, "default_answer": {"approved": True}}, "default_answer"),
        (
            {"expires_in_seconds": 1, "on_expiry": "answer", "default_answer": {"note": "x"}},
            "answers nothing",
        ),
        ({"expires_in_seconds": 1, "on_expiry": "escalate"}, "escalate_to"),
        ({"expires_in_seconds": 1, "escalate_to": {"users": ["oda"]}}, "escalate_to"),
        ({"expires_in_seconds": 1, "escalate_seconds": 1}, "escalate_seconds"),
        (
            {"expires_in_seconds": 1, "on_expiry": "escalate", "escalate_to": {}},
            "escalate_to",
        ),
        ({"remind_before_seconds": [1]}, "reminds"),
        ({"due_in_business_hours": 0}, "due_in_business_hours"),
        ({"due_in_business_hours": 2_001}, "due_in_business_hours"),
        ({"due_in_business_hours": "8"}, "due_in_business_hours"),
        ({"due_in_seconds": 1, "due_in_business_hours": 1}, "takes one of"),
        ({"due_in_seconds": 1, "calendar": {}}, "business hours"),
        ({"due_in_business_hours": 1, "calendar": {"zone": "Mars"}}, "zone"),
        ({**ESCALATED, "escalate_to": []}, "escalate_to"),
        ({**ESCALATED, "escalate_to": [{"groups": ["A"]}] * 11}, "escalate_to"),
        ({**ESCALATED, "escalate_to": [{"groups": ["A"]}, {}]}, "escalate_to"),
        ({**ESCALATED, "escalate_to": ["A"]}, "escalate_to"),
        ({**ESCALATED, "escalate_seconds": [1, 2]}, "escalate_seconds"),
        ({**ESCALATED, "escalate_seconds": 1, "escalate_business_hours": 1}, "not both"),
        ({"due_in_seconds": 1, "remind_before_seconds": "1"}, "remind_before_seconds"),
        ({"due_in_seconds": 1, "remind_before_seconds": [1] * 11}, "remind_before_seconds"),
    ],
)
def test_a_time_that_cannot_be_is_refused_with_its_name(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        approval("ok", "Ship it?", **wrong)
