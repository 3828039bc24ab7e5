"""The facts a record holds, in the words of the seeds (runs.md section 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from runs.kernel.jsonable import JSONValue

Path = tuple[str, ...]


def joined(path: Path) -> str:
    """The path as one text that no other path has, whatever its names hold."""
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in path)


class EventKind(StrEnum):
    """Every kind this version writes. A reader accepts unknown kinds (runs.md R204)."""

    RUN_START = "run:start"
    RUN_END = "run:end"
    RUN_CANCEL = "run:cancel-requested"
    RUN_HELD = "run:held"
    RUN_RESUMED = "run:resumed"
    RUN_SWEPT = "run:swept"
    # All places of its workflow or team were taken; it has got one.
    RUN_QUEUED = "run:queued"
    RUN_ADMITTED = "run:admitted"
    RUN_ABORT = "run:abort"
    HEARTBEAT = "heartbeat"
    MONITOR = "monitor"
    GRAPH_ANCHOR = "workflow:start"
    GRAPH_START = "dag:start"
    NODE = "dag:node"
    SEND_BACK = "dag:kickback"
    GRAPH_END = "dag:end"
    LOOP_START = "loop:start"
    LOOP_ITERATION = "loop:iteration"
    LOOP_CONDITION = "loop:condition"
    LOOP_PROGRESS = "loop:progress"
    LOOP_REVIEW = "loop:review"
    LOOP_STALL = "loop:stall"
    LOOP_WAIT = "loop:wait"
    LOOP_COMPLETE = "loop:complete"
    LOOP_END = "loop:end"
    STEP_READY = "step:ready"
    STEP_LOST = "step:lost"
    STEP_REFUSED = "step:refused"
    RETRY_PENDING = "run.retry-pending"
    RETRY_NOW = "run.retry-now"
    LIMIT_WAIT = "limit:wait"
    LIMIT_PAUSE = "limit:pause"
    JOB_START = "job:start"
    JOB_END = "job:end"
    # Beside the seeds' own: the work as it was when a writer began to answer a review.
    REWORK = "job:rework"
    # What calls of engines that are under way may use of the run's budget.
    TOKENS_SET_ASIDE = "budget:set-aside"
    TOKENS_FREED = "budget:freed"
    # What an agent step keeps while a person answers it.
    CHECKPOINT = "interaction:checkpoint"
    CONDITION = "condition:result"
    ARTIFACT = "artifact:stored"
    PROOF = "proof"
    ENGINE_TEXT = "engine:text"
    ENGINE_THINKING = "engine:thinking"
    LOG = "log"
    ERROR = "error"
    REQUESTED = "callback-requested"
    ROUTED = "callback-routed"
    CLAIMED = "callback-claimed"
    RELEASED = "callback-released"
    SUBMITTED = "callback-submitted"
    REJECTED = "callback-rejected"
    SUPERSEDED = "callback-superseded"
    WITHDRAWN = "callback-withdrawn"
    # What time does to a question: nobody's act, and never a person's answer.
    REMINDED = "callback-reminded"
    OVERDUE = "callback-overdue"
    ESCALATED = "callback-escalated"
    EXPIRED = "callback-expired"
    REFUSED = "callback-refused"
    REUSED = "callback-reused"
    # Beside the seeds' own release, which has no place for a reason.
    FORCE_RELEASED = "callback-force-released"
    # Calls of tools, and what a person decided about those that needed somebody's yes.
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_DECIDED = "approval.decided"
    GRANT_ISSUED = "grant.issued"
    GRANT_REVOKED = "grant.revoked"
    TOOL_RESERVED = "tool.reserved"
    TOOL_STARTED = "tool.started"
    TOOL_COMPLETED = "tool.completed"
    TOOL_FAILED = "tool.failed"
    TOOL_REFUSED = "tool.refused"
    TOOL_SUPPRESSED = "tool.suppressed"
    TOOL_INDETERMINATE = "tool.indeterminate"
    TOOL_SETTLED = "tool.settled"
    # One of several people has answered, somebody answers for another, or was named to answer.
    RESPONDED = "callback-responded"
    DEPUTIZED = "callback-deputized"
    ASSIGNED = "callback-assigned"
    DELEGATED = "callback-delegated"
    # Answered by somebody who was not asked, with a reason.
    OVERRIDDEN = "callback-overridden"


# The six kinds a callback history consists of (gates.md section 4).
CALLBACK_KINDS = frozenset(
    {
        EventKind.REQUESTED,
        EventKind.CLAIMED,
        EventKind.RELEASED,
        EventKind.SUBMITTED,
        EventKind.REJECTED,
        EventKind.SUPERSEDED,
    }
)


@dataclass(frozen=True, slots=True)
class Event:
    """One fact. `seq` is 0 until it is recorded; `ts` is integer milliseconds since the epoch."""

    kind: str
    path: Path = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    seq: int = 0
    ts: int = 0
    actor: str = "system"
    surface: str = ""
    key: str = ""

    def to_wire(self) -> dict[str, JSONValue]:
        """The seeds' shape: kind, ts, path and the fields of the kind beside them."""
        envelope = {"kind": str(self.kind), "ts": self.ts, "path": list(self.path)}
        return {**envelope, **self.fields, **envelope}

    def callback_wire(self) -> dict[str, JSONValue]:
        """The exact fields of a callback event, without the envelope (gates.md G41, G43)."""
        return {"kind": str(self.kind), **self.fields}
