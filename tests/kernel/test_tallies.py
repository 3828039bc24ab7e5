"""How many people have answered: distinct people, one of each team where that is wanted."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.tallies import Given, Tally, is_no, rule_of

YES: dict[str, Any] = {"approved": True}
A, B, C = "A", "B", "C"


def tally(*people: tuple[str, ...], needed: int = 2, one_per_team: bool = True) -> Tally:
    made = Tally(needed=needed, one_per_team=one_per_team)
    for number, teams in enumerate(people):
        made = made.plus(Given(actor=f"user:{number}", response=YES, teams=teams))
    return made


def test_so_many_people_are_enough_whatever_team_they_are_in() -> None:
    assert not tally((A,), one_per_team=False).is_met
    assert tally((A,), (A,), one_per_team=False).is_met


def test_one_person_in_both_teams_counts_once() -> None:
    both = tally((A, B))

    assert both.count == 1
    assert not both.is_met
    assert both.advances((A,))
    assert both.advances((B,))


def test_a_second_person_of_the_same_team_brings_nothing() -> None:
    one = tally((A,))

    assert not one.advances((A,))
    assert not one.advances(())
    assert one.advances((A, B))


@pytest.mark.parametrize("order", list(permutations([(A, B), (A,), (B, C)])))
def test_three_teams_are_covered_in_whichever_order_people_come(order: Any) -> None:
    assert tally(*order, needed=3).is_met


@given(st.lists(st.sets(st.sampled_from("ABCD")), max_size=6))
def test_nobody_ever_stands_for_two_teams_and_no_team_for_two_people(
    people: list[set[str]],
) -> None:
    made = tally(*(tuple(sorted(teams)) for teams in people))

    assert made.count <= len([teams for teams in people if teams])
    assert made.count <= len(set().union(*people))
    assert made.count >= min(1, len(set().union(*people)))


def test_a_deputy_uses_the_place_of_the_other_too() -> None:
    made = Tally(needed=3).plus(Given(actor="user:2", response=YES, deputy_for="user:1"))

    assert made.seats == {"user:1", "user:2"}
    assert made.of("user:1") == made.of("user:2") is not None
    assert made.of("user:3") is None
    assert made.count == 1


@pytest.mark.parametrize(
    ("response", "no"),
    [
        ({"approved": False}, True),
        ({"approved": False, "note": "not yet"}, True),
        ({"approved": True}, False),
        ({"approved": 0}, False),
        ({"decision": "deny"}, True),
        ({"decision": "changes-requested"}, True),
        ({"decision": "allow_once"}, False),
        ({"kind": "deny"}, True),
        ({"decision": ["deny"]}, False),
        ({}, False),
    ],
)
def test_only_a_no_settles_a_question_before_its_time(response: dict[str, Any], no: bool) -> None:
    assert is_no(response) is no


@pytest.mark.parametrize(
    ("routing", "rule"),
    [
        ({}, (1, False)),
        ({"needed": 3, "onePerTeam": True}, (3, True)),
        ({"needed": True}, (1, False)),
        ({"needed": "2"}, (1, False)),
        ({"needed": -1}, (1, False)),
        ({"needed": 10**9}, (20, False)),
    ],
)
def test_a_rule_that_was_written_by_hand_is_read_with_care(
    routing: dict[str, Any], rule: tuple[int, bool]
) -> None:
    assert rule_of(routing) == rule


def test_two_who_ask_the_same_get_the_stricter_of_their_rules() -> None:
    made = Tally(needed=3).stricter(2, one_per_team=True)

    assert (made.needed, made.one_per_team) == (3, True)
