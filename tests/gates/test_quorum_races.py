"""Answers, deadlines and cancels at one instant: one outcome, told the same everywhere."""

from __future__ import annotations

import os
from collections import Counter
from itertools import permutations
from typing import Any, Final

import pytest

from gates import services
from gates.errors import GateError
from gates.models import Request, Response
from gates.principals import Principal
from gates.projector import rebuild_requests
from runs import services as runs_services
from runs import sweep
from runs.access import Forbidden, NotVisible
from runs.errors import RunEnded
from runs.models import Event, Run, Step
from tests import factories
from tests.gates.test_deadline_races import MS, at
from tests.gates.test_races import crowd

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS: Final = int(os.environ.get("OBVERSA_TEST_RACE_ROUNDS", "20"))
TEAM: Final[dict[str, Any]] = {"groups": ["Team"]}
# Four hands and one more: two of three people, one of them who says no, the clock and a cancel.
ACTS: Final = ("first", "second", "deadline", "cancel")


def member(number: int) -> Principal:
    who = factories.person(f"racer-{number}", groups=["Team"])
    assert who.tokens
    return who


def answer(row: Request, who: Principal, approved: bool = True) -> str:
    try:
        services.submit(
            row.pk,
            principal=who,
            token=None,
            digest=row.digest,
            response={"approved": approved},
        )
    except (GateError, Forbidden, NotVisible) as refusal:
        return refusal.code
    return "ok"


def agree(row: Request) -> Counter[str]:
    """The record, the row, the run and the step say the same; the kinds of event, counted."""
    told = Request.objects.select_related("run").get(pk=row.pk)
    kinds = Counter(Event.objects.filter(run=row.run_id).values_list("kind", flat=True))
    step = Step.objects.get(run=row.run_id, path=row.step_path)
    answers = list(Response.objects.filter(request=row))

    assert kinds["callback-submitted"] + kinds["callback-expired"] <= 1
    assert (told.status == "answered") == (kinds["callback-submitted"] == 1)
    assert (told.status == "expired") == (kinds["callback-expired"] == 1)
    assert len(answers) == kinds["callback-responded"] == len({row.actor for row in answers})
    assert kinds["job:end"] <= 1
    assert kinds["run:end"] <= 1
    if told.run.status != Run.Status.CANCELLED:
        is_over = told.status in ("answered", "expired")
        assert (step.status in ("passed", "failed")) == is_over
    assert rebuild_requests(told.run) == 0
    return kinds


@pytest.mark.timeout(600)
def test_of_five_at_once_two_are_enough_and_the_others_hear_who_it_was() -> None:
    people = [member(number) for number in range(5)]
    with crowd(5) as together:
        for number in range(ROUNDS):
            row = factories.pending_gate(
                needed=2, audience=TEAM, question=f"Approve release {number}?"
            )

            came = Counter(together(lambda n, row=row: answer(row, people[n])))  # type: ignore[misc]  # a default binds the round's question

            assert came == {"ok": 2, "answered": 3}
            kinds = agree(row)
            assert (kinds["callback-responded"], kinds["callback-submitted"]) == (2, 1)
            run = Run.objects.get(pk=row.run_id)
            assert Step.objects.get(run=run, name="ship").status == "queued"


@pytest.mark.timeout(600)
def test_of_five_at_once_of_whom_three_are_asked_two_answer_and_strangers_leave_nothing() -> None:
    people = [*(member(number) for number in range(3)), factories.ben(), factories.cyd()]
    with crowd(5) as together:
        for number in range(ROUNDS):
            row = factories.pending_gate(
                needed=2, audience=TEAM, question=f"Approve release {number}?"
            )

            came = together(lambda n, row=row: answer(row, people[n]))  # type: ignore[misc]  # a default binds the round's question

            # Ben may look and hears no, whatever became of it meanwhile; Cyd hears of nothing.
            assert Counter(came[:3]) == {"ok": 2, "answered": 1}
            assert came[3:] == ["forbidden", "not-found"]
            kinds = agree(row)
            assert (kinds["callback-responded"], kinds["callback-submitted"]) == (2, 1)
            counted = set(Response.objects.filter(request=row).values_list("actor", flat=True))
            assert counted == {
                who.actor for who, told in zip(people, came, strict=True) if told == "ok"
            }
            run = Run.objects.get(pk=row.run_id)
            assert Step.objects.get(run=run, name="ship").status == "queued"


@pytest.mark.timeout(600)
def test_a_no_among_five_at_once_ends_it_and_counts_once() -> None:
    people = [member(number) for number in range(5)]
    with crowd(5) as together:
        for number in range(ROUNDS):
            row = factories.pending_gate(
                needed=4, audience=TEAM, question=f"Approve release {number}?"
            )

            came = together(lambda n, row=row: answer(row, people[n], approved=n != 2))  # type: ignore[misc]  # a default binds the round's question

            kinds = agree(row)
            told = Request.objects.get(pk=row.pk)
            final = Response.objects.filter(request=row).last()
            assert kinds["callback-submitted"] == 1
            assert told.status == "answered"
            assert final is not None
            # Four others may have been faster, and then it is a yes that no no can change.
            was_no = came[2] == "ok"
            assert final.response == {"approved": not was_no}
            assert came.count("ok") == kinds["callback-responded"]


def test_one_person_on_two_surfaces_answers_once() -> None:
    ada = member(0)
    assert ada.user is not None
    key = factories.key("laptop", user=ada.user)
    with crowd(2) as together:
        for number in range(ROUNDS):
            row = factories.pending_gate(
                needed=2, audience=TEAM, question=f"Approve release {number}?"
            )

            came = together(lambda n, row=row: answer(row, (ada, key)[n]))  # type: ignore[misc]  # a default binds the round's question

            # The same answer of the same person once more is no other one.
            assert came == ["ok", "ok"]
            assert agree(row)["callback-responded"] == 1


def do(act: str, row: Request) -> str:
    try:
        match act:
            case "first":
                return answer(row, member(0))
            case "second":
                return answer(row, member(1))
            case "deadline":
                assert row.expires_at is not None
                at(row, row.expires_at)
                sweep.advance(row.run_id)
            case _:
                runs_services.cancel_run(row.run_id, actor="user:0")
    except RunEnded:
        return "ended"
    return "ok"


@pytest.mark.parametrize("order", list(permutations(ACTS)), ids="-".join)
def test_two_answers_a_deadline_and_a_cancel_in_every_order(order: tuple[str, ...]) -> None:
    row = factories.pending_gate(needed=2, audience=TEAM, expires_in_seconds=3_600)
    assert row.expires_at is not None
    at(row, row.expires_at - MS)

    came = {act: do(act, row) for act in order}

    kinds = agree(row)
    told = Request.objects.select_related("run").get(pk=row.pk)
    in_time = [act for act in order if act not in ("deadline", "cancel")]
    ends = min(order.index("deadline"), order.index("cancel"))
    if order.index(in_time[1]) < ends:
        assert [came[act] for act in in_time] == ["ok", "ok"]
        assert told.status == "answered"
    else:
        assert kinds["callback-submitted"] == 0
        assert told.status == (
            "expired" if order.index("deadline") < order.index("cancel") else told.status
        )
        assert told.status in ("expired", "cancelled")
    if order.index("cancel") < order.index("deadline"):
        assert told.run.status in (Run.Status.CANCELLED, Run.Status.FAILED, Run.Status.PASSED)


@pytest.mark.timeout(600)
def test_all_of_them_at_once_leave_one_outcome_every_time() -> None:
    member(0), member(1)
    with crowd(4) as together:
        for number in range(ROUNDS):
            row = factories.pending_gate(
                needed=2,
                audience=TEAM,
                expires_in_seconds=3_600,
                question=f"Approve release {number}?",
            )
            assert row.expires_at is not None
            at(row, row.expires_at - MS)

            # Whoever is first in the crowd changes from round to round.
            together(lambda n, row=row, shift=number: do(ACTS[(n + shift) % 4], row))  # type: ignore[misc]  # defaults bind the round

            kinds = agree(row)
            assert (
                kinds["callback-submitted"]
                + kinds["callback-expired"]
                + kinds["run:cancel-requested"]
                >= 1
            )
