"""Calls, approvals and grants in words, whatever their events hold."""

from __future__ import annotations

from typing import Any

import pytest

from runs.kernel.events import EventKind
from runs.report.action_words import DECISIONS, TOLD, WORDS, said


def test_every_kind_of_the_gate_has_words() -> None:
    kinds = {str(kind) for kind in EventKind if kind.startswith(("tool.", "approval.", "grant."))}

    assert set(WORDS) == set(TOLD) == kinds


def test_a_decision_is_told_with_who_and_why() -> None:
    event: dict[str, Any] = {
        "tool": "publish_post",
        "decision": "deny",
        "decidedBy": "user:2",
        "note": "not this week",
    }

    assert said("approval.decided", event) == "publish_post denied by user:2: not this week"
    assert set(DECISIONS) == {"allow_once", "allow_conversation", "allow_always", "deny"}


def test_a_failure_is_told_with_its_message() -> None:
    event = {"tool": "publish_post", "error": {"message": "too many"}}

    assert TOLD["tool.failed"](event)[1] == "call failed: publish_post: too many"


@pytest.mark.parametrize("kind", sorted(WORDS))
@pytest.mark.parametrize("odd", [None, 7, [], {}, "x"])
def test_an_event_that_holds_anything_is_told_all_the_same(kind: str, odd: Any) -> None:
    names = ("tool", "summary", "decision", "decidedBy", "note", "error", "code", "as", "scope")
    mark, words = TOLD[kind](dict.fromkeys(names, odd))

    assert mark
    assert words.startswith(WORDS[kind])
