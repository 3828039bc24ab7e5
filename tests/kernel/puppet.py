"""A driver without threads or clock: a test says what happens next, the kernel what follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.kernel import callbacks, deadlines, loop_events
from runs.kernel.commands import StartStep, commands
from runs.kernel.decide import decide
from runs.kernel.errors import LoopError
from runs.kernel.events import Event, EventKind, Path
from runs.kernel.evolving import evolve
from runs.kernel.graph import Shape
from runs.kernel.outcomes import Outcome
from runs.kernel.places import graph_at
from runs.kernel.slots import WHEN, RunState, put_scope
from runs.kernel.state import reduce


class Puppet:
    """One run, moved by hand. Every settling checks what must always hold."""

    def __init__(
        self, shape: Shape, *, attended: bool = True, params: Mapping[str, Any] | None = None
    ) -> None:
        self.shape = shape
        self.attended = attended
        self.now = 1_000
        self.state = self.handed_out = RunState()
        self.events: list[Event] = []
        self.due: dict[tuple[str, Path], int] = {}
        self.append(EventKind.RUN_START, (), session=1, params=dict(params or {}))
        self.settle()

    def append(self, kind: str, path: Path = (), **fields: Any) -> None:
        self._record("world", kind, path, fields)

    def _record(self, actor: str, kind: str, path: Path, fields: Mapping[str, Any]) -> None:
        event = Event(kind, path, fields, seq=len(self.events) + 1, ts=self.now, actor=actor)
        self.state = reduce(self.state, event)
        self.events.append(event)

    def settle(self) -> None:
        while events := self._decided():
            for event in events:
                self._record("system", event.kind, event.path, event.fields)
            self._check_slots()
        for command in commands(self.shape, self.handed_out, self.state):
            if isinstance(command, StartStep):
                self.due[command.task, command.path] = command.number
            else:
                self.due.pop((command.task, command.path), None)
        self.handed_out = self.state

    def _decided(self) -> list[Event]:
        first = decide(self.shape, self.state, self.now, attended=self.attended)
        assert decide(self.shape, self.state, self.now, attended=self.attended) == first
        # Nothing is overseen for looking at those nodes alone that are watched.
        unknown = {at: evolve(one, watched=None) for at, one in self.state.scopes.items()}
        for at, scope in unknown.items():
            found = put_scope(self.state, at, scope).scopes[at].watched
            assert found == self.state.scopes[at].watched
        at_all = evolve(self.state, scopes=unknown)
        assert decide(self.shape, at_all, self.now, attended=self.attended) == first
        return first

    def _check_slots(self) -> None:
        for path, scope in self.state.scopes.items():
            if scope.invocation != self.state.slots[path[:-1]].number:
                # A loop has gone on, and another job of the same name may stand here by now.
                continue
            graph = graph_at(self.shape, path, self.state.loops)
            assert graph is not None
            working = [n for n in scope.nodes.values() if n.status in ("active", "checking")]
            assert scope.ended is not None or len(working) <= graph.slots

    # --- what a test may let happen --------------------------------------------------------------

    def starts(self, *path: str) -> None:
        self.append(EventKind.JOB_START, path, label="x")
        self.settle()

    def ends(self, *path: str, outcome: Outcome | str = "pass", raised: bool = False) -> None:
        """The step at the path starts and ends."""
        ended = Outcome(status=outcome) if isinstance(outcome, str) else outcome  # type: ignore[arg-type]  # a test's own word
        assert ("job", path) in self.due, f"{path} is not due: {list(self.due)}"
        del self.due["job", path]
        if self.state.slots[path].status == "queued":
            self.append(EventKind.JOB_START, path, label="x")
        self.now += 10
        more = {"raised": True} if raised else {}
        self.append(EventKind.JOB_END, path, label="x", outcome=ended.to_json(), **more)
        self.settle()

    def loses(self, task: str, *path: str) -> None:
        """The worker of the task at the path is never heard of again."""
        number = self.due.pop((task, path))
        self.append(EventKind.JOB_START, path, label="x", task=task)
        self.append(EventKind.STEP_LOST, path, number=number, task=task)
        self.settle()

    def checks(self, *path: str, met: bool) -> None:
        """A `when` written as code gives its verdict."""
        del self.due[WHEN, path]
        self.append(EventKind.JOB_START, path, label=WHEN, task=WHEN)
        result = {"met": met, "reason": "because"}
        self.append(EventKind.CONDITION, path, label=WHEN, iteration=0, result=result)
        self.settle()

    def finds(self, task: str, *path: str, found: loop_events.Found | LoopError) -> None:
        """A worker has done what a loop asked of it."""
        del self.due[task, path]
        self.append(EventKind.JOB_START, path, label=task, task=task)
        iteration = self.state.loops[path].iteration
        for event in loop_events.ended(path, task, iteration, found, self.now):
            self.append(event.kind, event.path, **event.fields)
        self.settle()

    def waits(self) -> None:
        """Time goes by until what waits for it may go on, or a question's time has come."""
        over = deadlines.next_at(self.state)
        times = [*self.state.waits.values(), *([] if over is None else [over])]
        self.now = max(self.now, min(times))
        self.settle()

    def cancels(self) -> None:
        self.append(EventKind.RUN_CANCEL, (), reason="cancelled")
        self.settle()

    def answers(self, response: Mapping[str, Any], request_id: str = "") -> None:
        """Somebody claims and answers the question, or the only one that is out."""
        if not request_id:
            (request_id,) = self.pending
        held = self.state.callbacks.requests[request_id]
        _, claimed = callbacks.claim(self.state.callbacks, request_id, "ada", "token")
        self._posted(claimed)
        _, answered = callbacks.submit(
            self.state.callbacks,
            request_id,
            claim_token="token",
            router_id="ada",
            request_digest=held.request.digest,
            response=response,
        )
        self._posted(answered)
        self.settle()

    def _posted(self, wires: list[callbacks.WireEvent]) -> None:
        for wire in wires:
            fields = {key: value for key, value in wire.items() if key != "kind"}
            self.append(str(wire["kind"]), (), **fields)

    # --- what a test looks at --------------------------------------------------------------------

    @property
    def pending(self) -> list[str]:
        return [request.request_id for request in self.state.callbacks.pending()]

    @property
    def outcome(self) -> Outcome:
        assert self.state.ended is not None
        return self.state.ended

    def ready(self) -> list[str]:
        """The last names of what workers have been given and not finished."""
        return sorted(path[-1] for task, path in self.due if task == "job")

    def node(self, *path: str) -> Any:
        return self.state.scopes[path[:-1]].nodes[path[-1]]

    def kinds(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def phases(self, node: str) -> list[str]:
        """What became of a node: `start`, `skip`, or the status it was done with."""
        found = []
        for event in self.kinds(EventKind.NODE):
            if event.fields["node"] == node:
                done = event.fields["phase"] == "done"
                found.append(event.fields["outcome"]["status"] if done else event.fields["phase"])
        return found
