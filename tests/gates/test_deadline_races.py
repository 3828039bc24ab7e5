"""A deadline, a cancel and an answer at one instant: one outcome, in every order."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime, timedelta
from itertools import permutations
from typing import Any, Final

import pytest

from gates import services
from gates.errors import Expired, GateError
from gates.models import Request, Response
from gates.projector import rebuild_requests
from runs import services as runs_services
from runs import sweep
from runs.errors import RunEnded
from runs.models import Event, Run
from tests import factories
from tests.gates.test_races import crowd

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS: Final = int(os.environ.get("OBVERSA_TEST_RACE_ROUNDS", "30"))
ACTS: Final = ("deadline", "cancel", "answer")
RACERS: Final = ("answer", "cancel", "deadline", "deadline")
LATE: Final = ("answer", "answer", "deadline", "deadline")
MS: Final = timedelta(milliseconds=1)


def asked(number: int, **time: Any) -> Request:
    return factories.pending_gate(
        expires_in_seconds=3_600, question=f"Approve release {number}?", **time
    )


def at(row: Request, moment: datetime) -> None:
    """Let the run's next turn be at this time: no turn is earlier than the one before it."""
    Run.objects.filter(pk=row.run_id).update(changed_at=moment)


def do(act: str, row: Request, who: Any) -> str:
    """One of the three; what came of it as a word."""
    try:
        match act:
            case "deadline":
                assert row.expires_at is not None
                at(row, row.expires_at)
                sweep.advance(row.run_id)
            case "cancel":
                runs_services.cancel_run(row.run_id, actor="user:0")
            case _:
                services.submit(
                    row.pk,
                    principal=who,
                    token=None,
                    digest=row.digest,
                    response={"approved": True},
                )
    except RunEnded:
        return "ended"
    except GateError as refusal:
        return refusal.code
    return "ok"


def is_one_outcome(row: Request, answered: str, cancelled: str) -> None:
    """The question was answered or it expired; its row, its run and what was told agree."""
    kinds = Counter(Event.objects.filter(run=row.run_id).values_list("kind", flat=True))
    told = Request.objects.select_related("run").get(pk=row.pk)

    assert kinds["callback-submitted"] + kinds["callback-expired"] == 1
    assert kinds["callback-submitted"] == (answered == "ok")
    assert answered in ("ok", "expired", "cancelled")
    assert told.status == ("answered" if answered == "ok" else "expired")
    assert Response.objects.filter(request=row).count() == (answered == "ok")
    assert kinds["job:end"] <= 1
    assert kinds["run:end"] <= 1
    assert (told.run.status == Run.Status.CANCELLED) == (cancelled == "ok")
    assert rebuild_requests(told.run) == 0


@pytest.mark.parametrize("order", list(permutations(ACTS)), ids="-".join)
@pytest.mark.parametrize("early", [1, 0], ids=["just-before", "at-the-instant"])
def test_one_after_the_other_in_every_order(order: tuple[str, ...], early: int) -> None:
    row = asked(0)
    assert row.expires_at is not None
    at(row, row.expires_at - early * MS)

    came = {act: do(act, row, factories.ada()) for act in order}

    is_one_outcome(row, came["answer"], came["cancel"])
    if not early or order[0] == "deadline":
        assert came["answer"] == "expired"
    elif order.index("answer") < min(order.index("cancel"), order.index("deadline")):
        assert came["answer"] == "ok"
    if order[0] == "cancel":
        # At the instant its question has expired, and the run is cancelled all the same.
        assert came["cancel"] == "ok"


@pytest.mark.timeout(600)
def test_all_at_once_they_leave_one_outcome_every_time() -> None:
    ada = factories.ada()
    assert ada.tokens
    seen: Counter[str] = Counter()
    with crowd(4) as together:
        for number in range(ROUNDS):
            row = asked(number)
            assert row.expires_at is not None
            at(row, row.expires_at - MS)

            # Whoever is first in the crowd changes from round to round.
            def act(n: int, row: Request = row, shift: int = number) -> tuple[str, str]:
                chosen = RACERS[(n + shift) % 4]
                return chosen, do(chosen, row, ada)

            came = dict(together(act))
            is_one_outcome(row, came["answer"], came["cancel"])
            seen[came["answer"]] += 1
    assert sum(seen.values()) == ROUNDS


@pytest.mark.timeout(600)
def test_many_sweeps_at_once_end_a_question_once() -> None:
    with crowd(8) as together:
        for number in range(ROUNDS):
            row = asked(number, on_expiry="escalate", escalate_to={"users": ["oda"]})
            together(lambda _n, row=row: do("deadline", row, None))  # type: ignore[misc]  # a default binds the round's question
            kinds = factories.event_kinds(row.run)
            assert kinds.count("callback-escalated") == 1
            assert "callback-expired" not in kinds


def test_a_late_answer_at_the_same_time_as_many_sweeps_is_refused() -> None:
    ada = factories.ada()
    assert ada.tokens
    with crowd(4) as together:
        for number in range(ROUNDS):
            row = asked(number)
            assert row.expires_at is not None
            at(row, row.expires_at)
            came = together(lambda n, row=row: do(LATE[n], row, ada))  # type: ignore[misc]  # a default binds the round's question
            assert came[:2] == [Expired.code] * 2
            assert factories.event_kinds(row.run).count("callback-expired") == 1
