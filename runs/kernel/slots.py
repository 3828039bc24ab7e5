"""What is known of a run at one moment, and the changes that events are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from runs.kernel import callbacks, scopes
from runs.kernel.callbacks import CallbackState
from runs.kernel.events import Path
from runs.kernel.outcomes import Outcome
from runs.kernel.scopes import Scope

SlotStatus = Literal["queued", "running", "asking", "lost", "ended"]
JOB: Final = "job"
WHEN: Final = "when"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The place of one job: which start it is at and how far it came.

    `number` counts the starts at this path over the whole run, so a message, a lease and a result
    can each name the one start they belong to.
    """

    number: int = 1
    status: SlotStatus = "queued"
    started_at: int = 0
    outcome: Outcome | None = None
    request_id: str = ""
    ask: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Everything a decision may look at.

    `queued` holds the number of every start that is due, by task and path: the slots and checks
    in that status, kept beside them so that nobody has to look through all.
    """

    run_id: str = ""
    seq: int = 0
    session: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)
    scopes: Mapping[Path, Scope] = field(default_factory=dict)
    slots: Mapping[Path, Slot] = field(default_factory=dict)
    checks: Mapping[Path, Slot] = field(default_factory=dict)
    queued: Mapping[tuple[str, Path], int] = field(default_factory=dict)
    callbacks: CallbackState = field(default_factory=callbacks.empty)
    resumed: frozenset[str] = frozenset()
    withdrawn: Mapping[str, str] = field(default_factory=dict)
    held: str = ""
    cancelled: bool = False
    ended: Outcome | None = None

    @property
    def started(self) -> bool:
        return self.session > 0


def put(state: RunState, task: str, path: Path, slot: Slot) -> RunState:
    """Set a slot or a check, and with it which starts are due."""
    queued = state.queued
    if slot.status == "queued":
        queued = {**queued, (task, path): slot.number}
    elif (task, path) in queued:
        queued = {key: number for key, number in queued.items() if key != (task, path)}
    if task == WHEN:
        return replace(state, checks={**state.checks, path: slot}, queued=queued)
    return replace(state, slots={**state.slots, path: slot}, queued=queued)


def put_slot(state: RunState, path: Path, **changes: Any) -> RunState:
    """Change the slot at a path."""
    return put(state, JOB, path, replace(state.slots.get(path, Slot()), **changes))


def put_check(state: RunState, path: Path, **changes: Any) -> RunState:
    """Change the check at a path."""
    return put(state, WHEN, path, replace(state.checks[path], **changes))


def fresh_slot(state: RunState, path: Path) -> RunState:
    """Begin the next start at a path."""
    before = state.slots.get(path)
    return put(state, JOB, path, Slot(number=1 if before is None else before.number + 1))


def put_scope(state: RunState, path: Path, scope: Scope) -> RunState:
    """Set the scope of a graph."""
    return replace(state, scopes={**state.scopes, path: scope})


def put_node(state: RunState, path: Path, name: str, **changes: Any) -> RunState:
    """Change one node of a graph."""
    return put_scope(state, path, scopes.with_node(state.scopes[path], name, **changes))


def wake(state: RunState, path: Path) -> RunState:
    """Work beneath a paused node makes it active again, and so on outwards."""
    while len(path) > 2:
        path, name = path[:-2], path[-2]
        if state.scopes[path].nodes[name].status == "paused":
            state = put_node(state, path, name, status="active", outcome=None)
    return state
