"""Who may answer a question, and how, is checked in one place for workflows and programs alike."""

from __future__ import annotations

from typing import Any

import pytest

from runs import approval
from runs.kernel.errors import DeclarationError
from runs.shapes.routing import RoutingRefused, routing_of, wire_routing

TEAMS = {"groups": ["Security", "Release"]}


def test_what_is_said_goes_into_the_record_under_the_names_of_the_wire() -> None:
    made = routing_of(
        {
            "audience": TEAMS,
            "priority": 5,
            "on_answer": "hold",
            "needed": 2,
            "one_per_team": True,
            "exclude_requester": False,
            "risk": "high",
        }
    )

    assert made == {
        "audience": TEAMS,
        "priority": 5,
        "onAnswer": "hold",
        "needed": 2,
        "onePerTeam": True,
        "excludeRequester": False,
        "risk": "high",
    }
    assert wire_routing(made) == made


def test_what_is_usual_is_not_recorded() -> None:
    assert routing_of({"audience": None, "priority": 0, "on_answer": "resume", "needed": 1}) == {}


def test_each_team_answers_where_no_number_is_given() -> None:
    assert routing_of({"audience": TEAMS, "one_per_team": True})["needed"] == 2


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"audience": ["ada"]}, "audience"),
        ({"audience": {"users": "ada"}}, "audience"),
        ({"audience": {"users": [7]}}, "audience"),
        ({"audience": {"robots": ["x"]}}, "audience"),
        ({"priority": 1_001}, "priority"),
        ({"priority": True}, "priority"),
        ({"on_answer": "later"}, "on_answer"),
        ({"needed": 0}, "needed"),
        ({"needed": 21}, "needed"),
        ({"needed": True}, "needed"),
        ({"needed": 2.0}, "needed"),
        ({"exclude_requester": "yes"}, "exclude_requester"),
        ({"risk": "huge"}, "risk"),
        ({"audience": {"users": ["ada", "ada"]}, "needed": 2}, "audience"),
        ({"audience": {"users": ["ada"], "keys": []}, "needed": 2}, "audience"),
        ({"one_per_team": True}, "one_per_team"),
        ({"one_per_team": True, "audience": {"groups": ["A"]}}, "one_per_team"),
        ({"one_per_team": True, "needed": 3, "audience": TEAMS}, "audience"),
        ({"one_per_team": True, "audience": {**TEAMS, "users": ["ada"]}}, "audience"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_is_refused_by_the_name_it_was_given(
    given: dict[str, Any], named: str
) -> None:
    with pytest.raises(RoutingRefused) as refused:
        routing_of(given)

    assert refused.value.name == named


def test_an_approval_says_which_of_its_options_cannot_be() -> None:
    with pytest.raises(DeclarationError, match=r"approval\('go'\): needed is a number of people"):
        approval("go", "Go?", needed=0)


def test_people_who_are_asked_later_must_be_enough_as_well() -> None:
    with pytest.raises(DeclarationError, match=r"escalateTo names fewer"):
        approval(
            "go",
            "Go?",
            needed=2,
            expires_in_seconds=60,
            on_expiry="escalate",
            escalate_to={"users": ["oda"]},
        )


def test_a_function_is_not_several_people() -> None:
    with pytest.raises(DeclarationError, match="not several people"):
        approval("go", "Go?", needed=2, answer=lambda request: {"approved": True})
