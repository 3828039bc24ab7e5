"""How many people have to answer a question, and who has: plain values and their rules.

Distinct people count, never answers: whoever is in two of the teams stands for one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

MAX_NEEDED: Final = 20
# What a decision says that is no yes: such an answer settles the question.
_NO: Final = ("deny", "changes-requested")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One person's answer; `deputy_for` is the person in whose place it was given.

    `teams` are those of the audience that the person was in at that moment.
    """

    actor: str
    response: Mapping[str, Any]
    deputy_for: str = ""
    teams: tuple[str, ...] = ()

    @property
    def seats(self) -> frozenset[str]:
        """The people who cannot answer again: a deputy uses two places for one answer."""
        return frozenset((self.actor, self.deputy_for)) - {""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The answers a question needs, and those it has."""

    needed: int = 1
    one_per_team: bool = False
    given: tuple[Given, ...] = ()

    @property
    def count(self) -> int:
        """How many of the answers that are needed are there."""
        if not self.one_per_team:
            return len(self.given)
        return _teams_stood_for([one.teams for one in self.given])

    @property
    def is_met(self) -> bool:
        return self.count >= self.needed

    @property
    def seats(self) -> frozenset[str]:
        """Who has answered, or was answered for."""
        return frozenset().union(*(one.seats for one in self.given))

    def of(self, actor: str) -> Given | None:
        """The answer that this person has given, or that was given in their place."""
        return next((one for one in self.given if actor in one.seats), None)

    def plus(self, answer: Given) -> Tally:
        return replace(self, given=(*self.given, answer))

    def advances(self, teams: Iterable[str]) -> bool:
        """Whether one more person of these teams would bring it further."""
        new = Given(actor="", response={}, teams=tuple(teams))
        return self.plus(new).count > self.count

    def stricter(self, needed: int, *, one_per_team: bool) -> Tally:
        """The rule of two askers of one question: what either of them wants."""
        return replace(
            self,
            needed=max(self.needed, needed),
            one_per_team=self.one_per_team or one_per_team,
        )


def is_no(response: Mapping[str, Any]) -> bool:
    """Whether the answer refuses, so that further ones could change nothing."""
    refuses = response.get("decision") in _NO or response.get("kind") in _NO
    return response.get("approved") is False or refuses


def rule_of(routing: Mapping[str, Any]) -> tuple[int, bool]:
    """How many people a routing wants, and whether each of another team."""
    needed = routing.get("needed")
    count = 1
    if isinstance(needed, int) and not isinstance(needed, bool):
        count = min(max(needed, 1), MAX_NEEDED)
    return count, routing.get("onePerTeam") is True


def _teams_stood_for(people: list[tuple[str, ...]]) -> int:
    """How many teams have somebody of their own, nobody standing for two: the best assignment."""
    stands_for: dict[str, int] = {}

    def place(person: int, tried: set[str]) -> bool:
        for team in people[person]:
            if team in tried:
                continue
            tried.add(team)
            if team not in stands_for or place(stands_for[team], tried):
                stands_for[team] = person
                return True
        return False

    return sum(place(person, set()) for person in range(len(people)))
