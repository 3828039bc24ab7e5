"""Where a run stands whose workflow or team has a limit of runs under way (docs/queues.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from runs.kernel.events import Event, EventKind
from runs.kernel.evolving import evolve
from runs.kernel.slots import ADMITTED, QUEUED, RunState


def left(state: RunState) -> RunState:
    """Whoever stopped while it stood in line has left it, and takes its place there anew."""
    return evolve(state, admission="") if state.admission == QUEUED else state


def _stands(state: RunState, event: Event, admission: str) -> RunState:
    return evolve(state, admission=admission, lends=event.fields.get("lends") is True)


HANDLERS: Final[Mapping[str, Callable[[RunState, Event], RunState]]] = {
    EventKind.RUN_QUEUED: lambda state, event: _stands(state, event, QUEUED),
    EventKind.RUN_ADMITTED: lambda state, event: _stands(state, event, ADMITTED),
}
