"""What the record keeps for steps of agents: the work before a rework, and open conversations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from runs.kernel.events import Event, EventKind
from runs.kernel.slots import RunState


def _rework(state: RunState, event: Event) -> RunState:
    """A writer begins to answer a review; its next tries compare with the work as it was."""
    before = event.fields["attempt"], event.fields["before"]
    return replace(state, reworks={**state.reworks, event.path: before})


def _checkpoint(state: RunState, event: Event) -> RunState:
    """What an agent step keeps over its question; no data deletes it (runs.md R214)."""
    kept = {path: fields for path, fields in state.checkpoints.items() if path != event.path}
    if event.fields.get("data") is not None:
        kept[event.path] = event.fields
    return replace(state, checkpoints=kept)


HANDLERS: Final[Mapping[str, Callable[[RunState, Event], RunState]]] = {
    EventKind.REWORK: _rework,
    EventKind.CHECKPOINT: _checkpoint,
}
