"""Words for calls of tools, approvals and grants: for reports, and for the lines of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from runs.report.phrases import NOTE, START, WAITS, WRONG, Told, after
from runs.report.text import Wire, facts, text

DECISIONS: Final[Mapping[str, str]] = {
    "allow_once": "allowed once",
    "allow_conversation": "allowed for the conversation",
    "allow_always": "always allowed",
    "deny": "denied",
}
_OUTCOMES: Final[Mapping[str, str]] = {
    "happened": "it happened",
    "did-not-happen": "it did not happen",
    "abandon": "given up",
}
# What happened in two or three words, per kind.
WORDS: Final[Mapping[str, str]] = {
    "approval.requested": "approval asked",
    "approval.decided": "approval decided",
    "grant.issued": "grant made",
    "grant.revoked": "grant revoked",
    "tool.reserved": "call reserved",
    "tool.started": "call begun",
    "tool.completed": "call done",
    "tool.failed": "call failed",
    "tool.refused": "call not made",
    "tool.suppressed": "call suppressed",
    "tool.indeterminate": "call in doubt",
    "tool.settled": "call settled",
}
# What only repeats the lines around it.
QUIET: Final = frozenset({"approval.requested", "tool.reserved", "tool.started"})
GATES: Final = frozenset(
    {"approval.requested", "approval.decided", "grant.issued", "grant.revoked"}
)
ERRORS: Final = frozenset({"tool.failed", "tool.refused", "tool.indeterminate"})
_MARKS: Final[Mapping[str, str]] = {
    "approval.requested": WAITS,
    "tool.started": START,
    "tool.failed": WRONG,
    "tool.refused": WRONG,
    "tool.indeterminate": WAITS,
}


def said(kind: str, given: Mapping[str, Any]) -> str:
    """What an event of one of these kinds tells beside its kind; nothing it holds is trusted."""
    tool = text(given.get("tool"))
    match kind:
        case "approval.requested":
            return text(given.get("summary")) or tool
        case "approval.decided":
            decided = DECISIONS.get(text(given.get("decision")), "decided")
            by = text(given.get("decidedBy"))
            words = f"{tool} {decided}" + (f" by {by}" if by else "")
            return after(words, given.get("note"))
        case "grant.issued":
            return f"{text(given.get('matchValue'))} for its {text(given.get('scope'))}"
        case "grant.revoked":
            return f"by {text(given.get('revokedBy'))}"
        case "tool.failed":
            return after(tool, facts(given.get("error")).get("message"))
        case "tool.refused":
            return after(tool, given.get("code"))
        case "tool.suppressed":
            return text(given.get("summary")) or tool
        case "tool.settled":
            return after(tool, _OUTCOMES.get(text(given.get("as"))))
    return tool


def _told(kind: str) -> Callable[[Wire], Told]:
    mark = _MARKS.get(kind, NOTE)
    return lambda event: (mark, after(WORDS[kind], said(kind, event)))


TOLD: Final[Mapping[str, Callable[[Wire], Told]]] = {kind: _told(kind) for kind in WORDS}
