"""A question that its store refuses: the step that put it fails, and the run goes on."""

from __future__ import annotations

from runs.kernel.decide import place_at
from runs.kernel.errors import as_loop_error
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.graph import Shape
from runs.kernel.outcomes import failing
from runs.kernel.redact import redact
from runs.kernel.slots import RunState


def not_asked(shape: Shape, state: RunState, path: Path, raised: Exception) -> list[Event]:
    """The events that end the step at `path`; none when it may not simply end.

    What became of an interrupted step has to be asked: one that was failed instead would run
    again in the next session as if it had never begun (design I5).
    """
    slot = state.slots.get(path)
    if slot is None or slot.status == "lost":
        return []
    error = as_loop_error(raised, fallback="VALIDATION", phase="body")
    error.message = redact(error.message)
    label = place_at(shape, state, path).leaf.label
    told = {"message": error.message, "code": error.code}
    ended = {"label": label, "outcome": failing(error).to_json()}
    return [Event(EventKind.ERROR, path, told), Event(EventKind.JOB_END, path, ended)]
