"""Who of those whose pages are open may still look: each session and each person asked once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any
from uuid import UUID

from runs import access
from runs.people.principals import Principal
from runs.people.visitors import person_behind

Scope = dict[str, Any]


def session_of(scope: Scope) -> Hashable:
    """What sockets of one session have in common."""
    return getattr(scope.get("session"), "session_key", None)


def still_here(scopes: Sequence[Scope]) -> list[Any]:
    """The person behind each socket now: somebody, or nobody where the session ended. Blocks."""
    people: dict[Hashable, Any] = {}
    found = []
    for scope in scopes:
        session = session_of(scope)
        if session not in people:
            people[session] = person_behind(scope)
        found.append(people[session])
    return found


def still_see(run_id: UUID, scopes: Sequence[Scope]) -> list[bool]:
    """Whether the person behind each socket may see the run now. Blocks."""
    verdicts: dict[Any, bool] = {None: False}
    found = []
    for person in still_here(scopes):
        if person.pk not in verdicts:
            who = Principal.for_user(person)
            verdicts[person.pk] = access.visible_runs(who).filter(pk=run_id).exists()
        found.append(verdicts[person.pk])
    return found
