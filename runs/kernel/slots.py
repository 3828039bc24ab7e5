"""What is known of a run at one moment, and the changes that events are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from runs.kernel import callbacks, scopes
from runs.kernel.answered import Answers
from runs.kernel.callbacks import CallbackState
from runs.kernel.clocks import Clock
from runs.kernel.events import Path
from runs.kernel.evolving import evolve
from runs.kernel.loops import LoopState
from runs.kernel.outcomes import Outcome
from runs.kernel.retries import Limits
from runs.kernel.scopes import Scope
from runs.kernel.spending import NOTHING, Purses, Spent
from runs.kernel.tallies import Tally

if TYPE_CHECKING:
    from runs.kernel.actions import Action

SlotStatus = Literal["queued", "running", "asking", "lost", "sleeping", "ended"]
JOB: Final = "job"
WHEN: Final = "when"
# Where a run stands whose workflow or team has a limit of runs under way.
QUEUED: Final = "queued"
ADMITTED: Final = "admitted"
# The start of a loop's review; from then on it is the job at the loop's path.
REVIEW: Final = "review"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The place of one job: which start it is at and how far it came.

    `number` counts the starts at this path over the whole run, so a message, a lease and a result
    can each name the one start they belong to. `tries` counts the failures of this attempt that
    were followed by a wait.
    """

    number: int = 1
    tries: int = 0
    status: SlotStatus = "queued"
    started_at: int = 0
    outcome: Outcome | None = None
    request_id: str = ""
    ask: Mapping[str, Any] | None = None

    @property
    def at_work(self) -> bool:
        """Whether the start is due or running: what comes of it is for its worker to say."""
        return self.status in ("queued", "running")


@dataclass(frozen=True, kw_only=True)
class RunState:
    """Everything a decision may look at.

    `queued` holds the number of every start that is due, by task and path: the slots and checks
    in that status, kept beside them so that nobody has to look through all. `checks` holds every
    other task than a job, by the same key. `waits` holds the time (ms since the epoch) at which
    what waits at a path may go on by itself. `spent` is this session's, `spent_in_all` the whole
    record's; `purses` holds what each node's attempt and each loop's round spent. `answers` are the
    calls that engines answered; `reworks` holds, for each place whose work was sent back, which
    attempt answers that and the digest of the work as it was before (runs.md R51). `checkpoints`
    is what agent steps keep while people answer them (gates.md G151), `set_aside` what calls of
    engines under way may use of the budget, by call (runs.md R269). `clocks` holds
    the times of the open questions that have any, `expired` what was recorded of those whose time
    was over, `tallies` the answers of those that need several, `overridden` what was recorded of
    those that somebody answered who was not asked: all by request id. `admission` is empty for a
    run that needs no place among those under way; `lends` gives that place back while it waits.
    """

    run_id: str = ""
    seq: int = 0
    session: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)
    scopes: Mapping[Path, Scope] = field(default_factory=dict)
    slots: Mapping[Path, Slot] = field(default_factory=dict)
    checks: Mapping[tuple[str, Path], Slot] = field(default_factory=dict)
    loops: Mapping[Path, LoopState] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    workspace_of: str = ""
    waits: Mapping[Path, int] = field(default_factory=dict)
    queued: Mapping[tuple[str, Path], int] = field(default_factory=dict)
    callbacks: CallbackState = field(default_factory=callbacks.empty)
    resumed: frozenset[str] = frozenset()
    withdrawn: Mapping[str, str] = field(default_factory=dict)
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    expired: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    overridden: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    actions: Mapping[str, Action] = field(default_factory=dict)
    approvals: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    admission: str = ""
    lends: bool = False
    held: str = ""
    cancelled: bool = False
    ended: Outcome | None = None
    spent: Spent = NOTHING
    spent_in_all: Spent = NOTHING
    purses: Purses = field(default_factory=dict)
    answers: Answers = ()
    reworks: Mapping[Path, tuple[str, str]] = field(default_factory=dict)
    checkpoints: Mapping[Path, Mapping[str, Any]] = field(default_factory=dict)
    set_aside: Mapping[str, tuple[Path, int]] = field(default_factory=dict)

    @property
    def started(self) -> bool:
        return self.session > 0

    @property
    def stands_in_line(self) -> bool:
        """Whether nothing of the run begins yet: its turn has not come."""
        return self.admission == QUEUED and not self.cancelled


def put(state: RunState, task: str, path: Path, slot: Slot) -> RunState:
    """Set a slot or a check, and with it which starts are due and which nodes are watched."""
    queued = state.queued
    if slot.status == "queued":
        queued = {**queued, (task, path): slot.number}
    elif (task, path) in queued:
        queued = dict(queued)
        del queued[task, path]
    if task != JOB:
        return evolve(state, checks={**state.checks, (task, path): slot}, queued=queued)
    slots = {**state.slots, path: slot}
    scope = state.scopes.get(path[:-1])
    if scope is not None and path[-1] in scope.nodes:
        after = scopes.worked_on(scope, path[-1], at_work=slot.at_work)
        if after is not scope:
            around = {**state.scopes, path[:-1]: after}
            return evolve(state, slots=slots, queued=queued, scopes=around)
    return evolve(state, slots=slots, queued=queued)


def put_slot(state: RunState, path: Path, **changes: Any) -> RunState:
    """Change the slot at a path."""
    return put(state, JOB, path, evolve(state.slots.get(path, Slot()), **changes))


def put_check(state: RunState, task: str, path: Path, **changes: Any) -> RunState:
    """Change the check of this task at a path."""
    return put(state, task, path, evolve(state.checks[task, path], **changes))


def fresh_slot(state: RunState, path: Path, *, tries: int = 0) -> RunState:
    """Begin the next start at a path; of the same attempt when it was tried before."""
    before = state.slots.get(path)
    number = 1 if before is None else before.number + 1
    return put(state, JOB, path, Slot(number=number, tries=tries))


def taken_back(state: RunState, path: Path) -> RunState:
    """A start that is due at a path and that nobody shall make."""
    slot = state.slots.get(path)
    due = slot is not None and slot.status == "queued"
    return put_slot(state, path, status="ended") if due else state


def put_scope(state: RunState, path: Path, scope: Scope) -> RunState:
    """Set the scope of a graph."""
    if scope.watched is None:
        scope = scopes.watching(scope, lambda name: _is_at_work(state, (*path, name)))
    return evolve(state, scopes={**state.scopes, path: scope})


def put_node(state: RunState, path: Path, name: str, **changes: Any) -> RunState:
    """Change one node of a graph."""
    at_work = _is_at_work(state, (*path, name))
    return put_scope(
        state, path, scopes.with_node(state.scopes[path], name, at_work=at_work, **changes)
    )


def _is_at_work(state: RunState, path: Path) -> bool:
    slot = state.slots.get(path)
    return slot is not None and slot.at_work


def put_loop(state: RunState, path: Path, loop: LoopState) -> RunState:
    """Set the state of a loop."""
    return evolve(state, loops={**state.loops, path: loop})


def put_wait(state: RunState, path: Path, until: int | None) -> RunState:
    """Let what stands at a path wait until this time, or no longer."""
    if until is not None:
        return evolve(state, waits={**state.waits, path: until})
    if path not in state.waits:
        return state
    return evolve(state, waits={at: time for at, time in state.waits.items() if at != path})


def wake(state: RunState, path: Path) -> RunState:
    """Work beneath a paused node makes it active again, and so on outwards."""
    for end in range(len(path) - 1, 1, -1):
        at, name = path[: end - 1], path[end - 1]
        scope = state.scopes.get(at)
        node = None if scope is None else scope.nodes.get(name)
        if node is not None and node.status == "paused":
            state = put_node(state, at, name, status="active", outcome=None)
    return state
