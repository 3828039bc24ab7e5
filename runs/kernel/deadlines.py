"""What happens to questions by themselves: reminders, and the end of their time.

It is decided from the record and the time alone, by whoever looks first, under the run's lock: a
deadline, an answer and a cancel at one instant have one winner (interactions.md I48).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from runs.kernel import callback_events, clocks
from runs.kernel.callbacks import CallbackStatus
from runs.kernel.clocks import Clock
from runs.kernel.events import CALLBACK_KINDS, Event, EventKind
from runs.kernel.evolving import evolve
from runs.kernel.slots import RunState


def next_at(state: RunState) -> int | None:
    """When the first question is due for something, in ms since the epoch.

    A cancelled run's questions are kept and nobody is told to watch their time (design D5).
    """
    if state.cancelled or (state.ended is not None and state.ended.status == "aborted"):
        return None
    times = (clock.next_at for clock in state.clocks.values())
    return min((at for at in times if at is not None), default=None)


def overdue(state: RunState, now: int) -> list[Event]:
    """The events of every question whose time has come; none when all have time."""
    events: list[Event] = []
    for request_id, clock in state.clocks.items():
        at = clock.next_at
        if at is not None and at <= now:
            events += _passed(state, request_id, clock, now)
    return events


def _passed(state: RunState, request_id: str, clock: Clock, now: int) -> list[Event]:
    about: dict[str, Any] = {"requestId": request_id}
    if not clock.is_over(now):
        ends = clock.expires_at if clock.due_at is None else clock.due_at
        told = {**about, "dueAt": None if ends is None else clocks.iso(ends)}
        return [Event(EventKind.REMINDED, clock.path, told, ts=now)]
    assert clock.expires_at is not None
    about["expiredAt"] = clocks.iso(clock.expires_at)
    match clock.rule.get("onExpiry", clocks.REJECT):
        case clocks.STAY_OPEN:
            return [Event(EventKind.OVERDUE, clock.path, about, ts=now)]
        case clocks.ESCALATE:
            return _escalated(state, request_id, clock, about, now)
    held = state.callbacks.requests[request_id]
    if held.is_live:
        # Closed first, in its own place: only a question that closed can have expired.
        closed = callback_events.superseded(request_id, request_id)
        return [_wire(closed, clock, now)]
    answer = clock.rule.get("defaultAnswer")
    about["onExpiry"] = clocks.REJECT
    tally = state.tallies.get(request_id)
    if tally is not None and tally.given:
        about |= {"responded": tally.count, "needed": tally.needed}
    if clock.rule.get("onExpiry") == clocks.ANSWER and isinstance(answer, Mapping):
        about |= {"onExpiry": clocks.ANSWER, "answer": answer}
    return [Event(EventKind.EXPIRED, clock.path, about, ts=now)]


def _escalated(
    state: RunState, request_id: str, clock: Clock, about: Mapping[str, Any], now: int
) -> list[Event]:
    """Ask the next audience; who held the question holds it no longer."""
    held = state.callbacks.requests[request_id]
    if held.status is CallbackStatus.CLAIMED:
        return [_wire(callback_events.released(request_id, str(held.router_id)), clock, now)]
    levels = clock.levels
    is_last = clock.level + 1 >= len(levels)
    told = {
        **about,
        "audience": levels[clock.level] if clock.level < len(levels) else {},
        "expiresAt": clocks.iso(clock.next_end(now)),
        "level": clock.level + 1,
        "onExpiry": clocks.REJECT if is_last else clocks.ESCALATE,
    }
    return [Event(EventKind.ESCALATED, clock.path, told, ts=now)]


def _wire(wire: Mapping[str, Any], clock: Clock, now: int) -> Event:
    fields = {key: value for key, value in wire.items() if key != "kind"}
    return Event(str(wire["kind"]), clock.path, fields, ts=now)


# --- how the events are folded -------------------------------------------------------------------


def routed(state: RunState, event: Event) -> RunState:
    """The clock of a question starts when it is put to somebody."""
    request_id = event.fields.get("requestId")
    held = state.callbacks.get(request_id)
    if held is None or not (held.is_live or held.superseded_by == request_id):
        return state
    clock = clocks.started(state.clocks.get(str(request_id)), event.path, event.fields, event.ts)
    return state if clock is None else _set(state, str(request_id), clock)


def called_back(state: RunState, event: Event) -> RunState:
    """What its own history does to a question's clock; asked anew, it starts anew."""
    match event.kind:
        case EventKind.REQUESTED:
            request_id = event.fields["request"]["requestId"]
            if request_id in state.expired:
                left = {key: told for key, told in state.expired.items() if key != request_id}
                state = evolve(state, expired=left)
            return stopped(state, request_id)
        case EventKind.SUBMITTED:
            return stopped(state, event.fields["requestId"])
        case EventKind.SUPERSEDED if event.fields["supersededBy"] != event.fields["requestId"]:
            return stopped(state, event.fields["requestId"])
    return state


def taken_up(state: RunState, events: Iterable[Event]) -> RunState:
    """The times of the questions that a record tells of, where a client knows what they are now."""
    state = evolve(state, clocks={}, expired={})
    for event in events:
        if event.kind == EventKind.ROUTED:
            state = routed(state, event)
        elif event.kind == EventKind.WITHDRAWN:
            state = stopped(state, event.fields["requestId"])
        elif event.kind in HANDLERS:
            state = HANDLERS[event.kind](state, event)
        elif event.kind in CALLBACK_KINDS:
            state = called_back(state, event)
    return state


def stopped(state: RunState, request_id: str) -> RunState:
    """The question's time no longer matters."""
    if request_id not in state.clocks:
        return state
    return evolve(
        state, clocks={key: clock for key, clock in state.clocks.items() if key != request_id}
    )


def _set(state: RunState, request_id: str, clock: Clock) -> RunState:
    return evolve(state, clocks={**state.clocks, request_id: clock})


def _expired(state: RunState, event: Event) -> RunState:
    request_id = event.fields["requestId"]
    state = stopped(state, request_id)
    return evolve(state, expired={**state.expired, request_id: event.fields})


def _reminded(state: RunState, event: Event) -> RunState:
    request_id = event.fields["requestId"]
    clock = state.clocks.get(request_id)
    return state if clock is None else _set(state, request_id, clock.reminded(event.ts))


def _escalates(state: RunState, event: Event) -> RunState:
    request_id = event.fields["requestId"]
    clock = state.clocks.get(request_id)
    if clock is None:
        return state
    ends = clocks.ms(event.fields.get("expiresAt"))
    if ends is None:
        ends = clock.next_end(event.ts)
    # Records of before knew one level, and a no after it.
    then = str(event.fields.get("onExpiry", clocks.REJECT))
    return _set(state, request_id, clock.renewed(ends, event.ts, then))


HANDLERS: Final[Mapping[str, Callable[[RunState, Event], RunState]]] = {
    EventKind.EXPIRED: _expired,
    EventKind.REMINDED: _reminded,
    EventKind.ESCALATED: _escalates,
    EventKind.OVERDUE: lambda state, event: stopped(state, event.fields["requestId"]),
}
