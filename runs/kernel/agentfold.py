"""What the record keeps for steps of agents: the work before a rework, and open conversations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from runs.kernel.events import Event, EventKind, Path
from runs.kernel.evolving import evolve
from runs.kernel.slots import RunState


def _rework(state: RunState, event: Event) -> RunState:
    """A writer begins to answer a review; its next tries compare with the work as it was."""
    before = event.fields["attempt"], event.fields["before"]
    return evolve(state, reworks={**state.reworks, event.path: before})


def _checkpoint(state: RunState, event: Event) -> RunState:
    """What an agent step keeps over its question; no data deletes it (runs.md R214)."""
    kept = {path: fields for path, fields in state.checkpoints.items() if path != event.path}
    if event.fields.get("data") is not None:
        kept[event.path] = event.fields
    return evolve(state, checkpoints=kept)


def _set_aside(state: RunState, event: Event) -> RunState:
    held = event.path, int(event.fields["tokens"])
    return evolve(state, set_aside={**state.set_aside, event.fields["call"]: held})


def _freed(state: RunState, event: Event) -> RunState:
    call = event.fields["call"]
    kept = {mark: held for mark, held in state.set_aside.items() if mark != call}
    return evolve(state, set_aside=kept)


def given_up(state: RunState, path: Path) -> RunState:
    """Nothing is set aside any longer for the step at `path`, whose worker is lost."""
    if not any(at == path for at, _ in state.set_aside.values()):
        return state
    kept = {mark: held for mark, held in state.set_aside.items() if held[0] != path}
    return evolve(state, set_aside=kept)


HANDLERS: Final[Mapping[str, Callable[[RunState, Event], RunState]]] = {
    EventKind.REWORK: _rework,
    EventKind.CHECKPOINT: _checkpoint,
    EventKind.TOKENS_SET_ASIDE: _set_aside,
    EventKind.TOKENS_FREED: _freed,
}
