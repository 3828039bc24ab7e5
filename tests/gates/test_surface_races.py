"""Page, API, an emergency and a cancel at one instant: one decision, told the same everywhere."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Final

import pytest

from gates import services
from gates.models import Request, Response
from runs import services as runs_services
from runs.models import Event, Run, Step
from tests.gates.calls import person
from tests.gates.test_answering_surfaces import (
    NO,
    YES,
    asked,
    at,
    by_page,
    client_of,
    member,
    rescuer,
    submit,
)
from tests.gates.test_races import crowd

ROUNDS: Final = int(os.environ.get("OBVERSA_TEST_RACE_ROUNDS", "10"))


@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_page_and_rest_at_one_instant_leave_one_decision() -> None:
    ada, eve = member("ada"), member("eve")
    page, api = client_of(ada), person(eve)
    ends: Counter[str] = Counter()
    with crowd(2) as together:
        for number in range(ROUNDS):
            row = asked(question=f"Approve release {number}?")

            def act(n: int, row: Request = row) -> int:
                answered = by_page(page, row) if n else submit(api, row, NO)
                return int(answered.status_code)

            rest, browser = together(act)

            assert {rest, browser} in ({200, 409}, {302, 409})
            told = Request.objects.select_related("run").get(pk=row.pk)
            kinds = Counter(Event.objects.filter(run=row.run_id).values_list("kind", flat=True))
            [answer] = Response.objects.filter(request=row)
            step = Step.objects.get(run=row.run_id, path=row.step_path)
            approved = browser == 302
            assert kinds["callback-submitted"] == kinds["job:end"] == 1
            assert answer.response["approved"] is approved
            assert told.answered_by == answer.actor == (ada if approved else eve).actor
            assert step.status == ("passed" if approved else "failed")
            assert (told.run.status == Run.Status.FAILED) is not approved
            shown = api.get(at(row)).json()
            assert shown["responses"][0]["response"] == answer.response
            ends["page" if approved else "rest"] += 1
    assert sum(ends.values()) == ROUNDS


@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_breaking_the_glass_an_answer_and_a_cancel_at_one_instant_leave_one_ending() -> None:
    rex, ada = rescuer(), member("ada")
    assert rex.tokens
    assert ada.tokens
    with crowd(3) as together:
        for number in range(ROUNDS):
            row = asked(question=f"Approve release {number}?")

            def act(n: int, row: Request = row, shift: int = number) -> str:
                given: dict[str, Any] = {"digest": row.digest, "response": YES}
                match (n + shift) % 3:
                    case 0:
                        services.break_glass(row.pk, principal=rex, reason="fire", **given)
                    case 1:
                        services.submit(row.pk, principal=ada, token=None, **given)
                    case _:
                        runs_services.cancel_run(row.run_id, actor="user:0")
                return "ok"

            together(act)

            told = Request.objects.select_related("run").get(pk=row.pk)
            kinds = Counter(Event.objects.filter(run=row.run_id).values_list("kind", flat=True))
            assert kinds["callback-submitted"] <= 1
            assert kinds["callback-overridden"] <= kinds["callback-submitted"]
            assert told.run.overridden is (kinds["callback-overridden"] == 1)
            assert (told.how == "overridden") is (kinds["callback-overridden"] == 1)
            assert (told.status == "answered") is (kinds["callback-submitted"] == 1)
            assert told.run.status == Run.Status.CANCELLED
