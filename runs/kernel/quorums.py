"""The answers of several people to one question, folded from the record (design D14).

Each answer is a fact of its own. The question's own answer, the one its asker gets, comes with the
last of them and in the contract's own event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from runs.kernel.events import Event, EventKind
from runs.kernel.evolving import evolve
from runs.kernel.slots import RunState
from runs.kernel.tallies import Given, Tally, is_no, rule_of


def tally_of(state: RunState, request_id: str) -> Tally:
    """What the question needs and has; one answer, where nobody said otherwise."""
    return state.tallies.get(request_id, Tally())


def lacks_people(state: RunState, request_id: str, response: Mapping[str, Any]) -> bool:
    """Whether an answer stands without the people it needs: a script cannot tell them apart."""
    tally = tally_of(state, request_id)
    settled = tally.is_met or is_no(response) or request_id in state.overridden
    return tally.needed > 1 and not settled


def routed(state: RunState, event: Event) -> RunState:
    """How many have to answer is said when a question is put to somebody."""
    needed, one_per_team = rule_of(event.fields)
    request_id = str(event.fields.get("requestId", ""))
    if needed == 1 and request_id not in state.tallies:
        return state
    held = state.callbacks.get(request_id)
    if held is None or not held.is_live:
        return state
    tally = tally_of(state, request_id).stricter(needed, one_per_team=one_per_team)
    return _set(state, request_id, tally)


def asked_anew(state: RunState, request_id: str) -> RunState:
    """A question that was taken back and is asked again has no answers yet."""
    if request_id not in state.tallies:
        return state
    left = {key: tally for key, tally in state.tallies.items() if key != request_id}
    return evolve(state, tallies=left)


def _responded(state: RunState, event: Event) -> RunState:
    request_id = str(event.fields["requestId"])
    tally = tally_of(state, request_id)
    # A key of a person's own answers for the person.
    person = str(event.fields.get("person") or event.actor)
    if tally.of(person) is not None:
        return state
    answer = Given(
        actor=person,
        response=event.fields["response"],
        deputy_for=str(event.fields.get("deputyFor", "")),
        teams=tuple(str(team) for team in event.fields.get("teams", ())),
    )
    return _set(state, request_id, tally.plus(answer))


def _overridden(state: RunState, event: Event) -> RunState:
    told = {**state.overridden, str(event.fields["requestId"]): event.fields}
    return evolve(state, overridden=told)


def _set(state: RunState, request_id: str, tally: Tally) -> RunState:
    return evolve(state, tallies={**state.tallies, request_id: tally})


HANDLERS: Final[Mapping[str, Callable[[RunState, Event], RunState]]] = {
    EventKind.RESPONDED: _responded,
    EventKind.OVERRIDDEN: _overridden,
}
