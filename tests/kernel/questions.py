from __future__ import annotations

from typing import Any

from runs.kernel.gate import CallbackRequest, create_callback_gate

APPROVED_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}},
    "required": ["approved"],
}


def definition(**changes: Any) -> dict[str, Any]:
    """The release question of the test vectors, with some fields changed."""
    return {
        "gate_id": "release-approval",
        "gate_version": 1,
        "decision_text": "Approve release abc123?",
        "response_schema": APPROVED_SCHEMA,
        "input": {"revision": "abc123"},
        **changes,
    }


def question(**changes: Any) -> CallbackRequest:
    """A request made from that definition."""
    return create_callback_gate(definition(**changes))
