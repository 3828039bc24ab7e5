"""The questions about an action: may it run, and did it happen (interactions.md I37, I74)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from runs.kernel.actions import (
    ABANDON,
    ALLOW_ALWAYS,
    ALLOW_CONVERSATION,
    ALLOW_ONCE,
    DENY,
    DID_NOT_HAPPEN,
    HAPPENED,
    Action,
)
from runs.kernel.gate import CallbackRequest, create_callback_gate
from runs.kernel.jsonable import JSONValue, canonical_json

MAX_SHOWN: Final = 200
MAX_NOTE: Final = 10_000
_FIELD: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.]*)\}")
_MARKS: Final = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&:@/])")
_WORD_MARKS: Final = re.compile(r"([\\`*_\[\]<>|~&])")
# Who is asked what became of a call; nobody else could look it up.
OPERATORS: Final[Mapping[str, Any]] = {"permissions": ["gates.change_request"]}
_PREFIX: Final = "action"
_DOUBT: Final = "doubt"


def is_about_action(gate: str) -> bool:
    """Whether a gate id, or a request id, is that of a question about an action."""
    place = gate.partition(":")[0].partition(".")[0]
    return ":" in gate and place in (_PREFIX, _DOUBT)


def fields_of(summary: str) -> list[str]:
    """The names of input that a summary has places for."""
    return _FIELD.findall(summary)


def filled(summary: str, given: Any) -> str:
    """The summary with the input's values, as plain text on one line."""

    def value(match: re.Match[str]) -> str:
        found = given
        for name in match[1].split("."):
            if not isinstance(found, Mapping) or name not in found:
                return match[0]
            found = found[name]
        text = found if isinstance(found, str) else canonical_json(found)
        text = " ".join(text.split())
        return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}\u2026"

    return _FIELD.sub(value, summary)


def decisions_for(policy: str, *, conversation: str, always: bool) -> tuple[str, ...]:
    """What may be decided: a grant only where the tool's policy counts grants (I34, I46, I54)."""
    offered = [ALLOW_ONCE]
    if policy == "policy" and conversation:
        offered.append(ALLOW_CONVERSATION)
    if policy == "policy" and always:
        offered.append(ALLOW_ALWAYS)
    return (*offered, DENY)


def action_request(
    facts: Mapping[str, Any],
    given: JSONValue,
    key: str,
    *,
    ask: int,
    decisions: tuple[str, ...],
) -> CallbackRequest:
    """The request of one approval; it holds exactly what will run (gates.md G205).

    `facts` are the tool's own: see `runs.shapes.tool.Tool.facts`.
    """
    cost = facts.get("cost")
    sensitive = [f"/input{pointer}" for pointer in facts.get("sensitive", ())]
    place = _PREFIX if ask == 1 else f"{_PREFIX}.{ask}"
    return create_callback_gate(
        gate_id=f"{place}:{facts['tool']}:{key}",
        gate_version=1,
        # Values are whatever a model wrote: they are shown, and mark nothing up.
        decision_text=_WORD_MARKS.sub(r"\\\1", str(facts["summary"])),
        response_schema={
            "type": "object",
            "properties": {
                "decision": {"type": "string", "enum": list(decisions), "title": "Decision"},
                "note": {"type": "string", "title": "Note", "maxLength": MAX_NOTE},
            },
            "required": ["decision"],
            "additionalProperties": False,
        },
        input={
            "tool": facts["tool"],
            "input": given,
            "risk": facts["risk"],
            "cost": None
            if cost is None
            else {"minorUnits": cost, "currency": facts.get("currency")},
            "idempotencyKey": key,
        },
        presentation={"sensitive": sensitive} if sensitive else {},
    )


def doubt_request(action: Action) -> CallbackRequest:
    """What became of a call whose worker stopped before its result, once per call (I74)."""
    return create_callback_gate(
        gate_id=f"{_DOUBT}:{action.tool}:{action.key}:{action.number}",
        gate_version=1,
        decision_text=(
            f"The call of **{_MARKS.sub(_escaped, action.tool)}** had begun when its worker "
            "stopped. Nobody can tell from here whether it happened, and it is not sent again by "
            "itself. Look at the other side under the key below.\n\n"
            f"- *{HAPPENED}* counts it as done; it is not sent again\n"
            f"- *{DID_NOT_HAPPEN}* sends it now, under the same key\n"
            f"- *{ABANDON}* gives it up; the step is told that it failed"
        ),
        response_schema={
            "type": "object",
            "properties": {
                "outcome": {
                    "type": "string",
                    "enum": [HAPPENED, DID_NOT_HAPPEN, ABANDON],
                    "title": "What became of the call",
                },
                "note": {"type": "string", "title": "Note", "maxLength": MAX_NOTE},
            },
            "required": ["outcome"],
            "additionalProperties": False,
        },
        input={
            "tool": action.tool,
            "idempotencyKey": action.key,
            "inputDigest": action.input_digest,
        },
    )


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[1]}"
