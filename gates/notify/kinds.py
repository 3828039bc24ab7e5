"""What is told: the events' public names, and how people choose among them."""

from __future__ import annotations

from typing import Final

GATE_REQUESTED: Final = "gate.requested"
QUESTION_REQUESTED: Final = "question.requested"
APPROVAL_REQUESTED: Final = "approval.requested"
REMINDED: Final = "request.reminded"
OVERDUE: Final = "request.overdue"
ESCALATED: Final = "request.escalated"
ASSIGNED: Final = "request.assigned"
ANSWERED: Final = "request.answered"
EXPIRED: Final = "request.expired"
CLOSED: Final = "request.closed"
RUN_FINISHED: Final = "run.finished"
RUN_FAILED: Final = "run.failed"
RUN_CANCELLED: Final = "run.cancelled"
RUN_PAUSED: Final = "run.paused"
TEST: Final = "channel.test"

# Nobody is told these when the question is no longer open, or no longer theirs to answer.
ASKING: Final = frozenset(
    {
        GATE_REQUESTED,
        QUESTION_REQUESTED,
        APPROVAL_REQUESTED,
        REMINDED,
        OVERDUE,
        ESCALATED,
        ASSIGNED,
    }
)
CLOSING: Final = frozenset({ANSWERED, EXPIRED, CLOSED})
OF_RUNS: Final = frozenset({RUN_FINISHED, RUN_FAILED, RUN_CANCELLED, RUN_PAUSED})

# What a channel may be told, in the groups in which people choose it.
GROUPS: Final = {
    "asked": (GATE_REQUESTED, QUESTION_REQUESTED, APPROVAL_REQUESTED, ESCALATED, ASSIGNED),
    "reminded": (REMINDED, OVERDUE),
    "closed": (ANSWERED, EXPIRED, CLOSED),
    "failed": (RUN_FAILED, RUN_PAUSED, RUN_CANCELLED),
    "finished": (RUN_FINISHED,),
}
GROUP_WORDS: Final = {
    "asked": "a question waits for an answer",
    "reminded": "its time is nearly over, or over",
    "closed": "somebody else answered it, or it was closed",
    "failed": "a run failed, stopped or was cancelled",
    "finished": "a run passed",
}
USUAL: Final = ("asked", "reminded", "failed")
GROUP_OF: Final = {kind: group for group, kinds in GROUPS.items() for kind in kinds}

# What a log says of one message.
WORDS: Final = {
    GATE_REQUESTED: "question",
    QUESTION_REQUESTED: "question",
    APPROVAL_REQUESTED: "approval of an action",
    REMINDED: "reminder",
    OVERDUE: "overdue",
    ESCALATED: "escalation",
    ASSIGNED: "given to you",
    ANSWERED: "answered",
    EXPIRED: "expired",
    CLOSED: "closed",
    RUN_FINISHED: "run passed",
    RUN_FAILED: "run failed",
    RUN_CANCELLED: "run cancelled",
    RUN_PAUSED: "run paused",
    TEST: "test",
}
