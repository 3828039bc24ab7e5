from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import format_event
from runs.kernel.events import Event

PASS = {"status": "pass"}
LATE = {"status": "pass", "late": True, "summary": "three files"}
REQUEST = {"requestId": "ok#1#ab", "decisionText": "Ship it?"}

# One event of every kind, and the line it makes.
LINES: dict[str, tuple[dict[str, Any], str]] = {
    "run:start": ({"runId": "r-1", "session": 2}, "▸ run start r-1 session 2"),
    "run:end": (
        {"outcome": PASS, "usage": {"inputTokens": 5, "outputTokens": 3}},
        "✓ run end pass 5/3 tok",
    ),
    "run:abort": ({"signal": "SIGINT"}, "✗ run abort: SIGINT"),
    "heartbeat": ({}, "• heartbeat"),
    "monitor": ({"url": "http://127.0.0.1:1/"}, "• monitor: http://127.0.0.1:1/"),
    "workflow:start": ({"identity": "ab"}, "• workflow:start"),
    "dag:start": ({"nodes": ["a", "b"]}, "▸ dag start 2 nodes"),
    "dag:node": ({"node": "a", "phase": "done", "outcome": LATE}, "✓ node a done (pass late)"),
    "dag:kickback": (
        {
            "from": "b",
            "to": "a",
            "reason": "no header",
            "accepted": True,
            "count": 1,
            "limit": 2,
            "note": "last one",
        },
        "↩ kickback accepted b -> a [1/2] no header (last one)",
    ),
    "dag:end": ({"outcome": {"status": "fail"}}, "✗ dag end fail"),
    "loop:start": ({"max": 3}, "▸ loop start max 3"),
    "loop:iteration": ({"iteration": 2}, "• iteration 2"),
    "loop:condition": (
        {"which": "until", "result": {"met": False, "reason": "red"}},
        "• condition until not met: red",
    ),
    "loop:review": ({"outcome": {"status": "fail"}, "accepted": True}, "✗ review fail"),
    "loop:stall": (
        {"report": {"window": 3, "iterations": [2, 3, 4], "reason": "same"}},
        "✗ stall 3 iterations: same",
    ),
    "loop:end": (
        {"outcome": {"status": "exhausted"}, "iterations": 2},
        "✗ loop end exhausted, 2 iterations",
    ),
    "condition:result": (
        {"label": "when", "result": {"met": True, "reason": "green"}},
        "• condition when met: green",
    ),
    "limit:wait": ({"code": "RATE_LIMIT", "waitMs": 1500}, "⏸ limit wait RATE_LIMIT 1.5s"),
    "limit:pause": ({"code": "QUOTA", "reason": "used up"}, "⏸ limit pause QUOTA: used up"),
    "job:start": ({"label": "write"}, "▸ job write"),
    "job:end": ({"label": "write", "outcome": LATE}, "✓ job write pass late, three files"),
    "proof": ({"name": "tests", "artifact": {"title": "21 passed"}}, "• proof tests: 21 passed"),
    "advisor:consult": (
        {"label": "plan", "call": 1, "question": "Which?"},
        "• advisor plan #1 Which?",
    ),
    "engine:text": ({"delta": "hello"}, ""),
    "engine:thinking": ({"delta": "hm"}, ""),
    "engine:tool": (
        {"name": "Read", "phase": "use", "target": "src/a.py"},
        "• tool Read use src/a.py",
    ),
    "engine:usage": (
        {"model": "m", "usage": {"kind": "reported", "inputTokens": 7, "outputTokens": 2}},
        "• m 7/2 tok",
    ),
    "refine:judge": (
        {"target": "write", "round": 1, "route": "again", "rule": "act", "reason": "a block"},
        "• judge write round 1 again act: a block",
    ),
    "goal:check": (
        {
            "label": "goal",
            "round": 1,
            "requirements": [
                {"requirement": "a test", "verdict": "met"},
                {"requirement": "a header", "verdict": "unmet"},
            ],
        },
        "✗ goal goal round 1, 1 of 2 met, unmet: a header",
    ),
    "review:synthesis": (
        {"label": "review", "entries": [{"result": "kept"}, {"result": "dropped"}]},
        "• synthesis review: 1 kept, 1 dropped",
    ),
    "round:change": (
        {"node": "write", "round": 2, "files": [{"path": "a"}], "added": 3, "removed": 1},
        "• change write round 2, 1 file, +3 -1",
    ),
    "interaction:checkpoint": ({"identity": "x", "data": None}, "• interaction:checkpoint"),
    "log": ({"level": "warn", "message": "slow"}, "• log warn slow"),
    "error": ({"code": "CONFIG", "message": "no engine"}, "✗ error CONFIG: no engine"),
    "callback-requested": ({"request": REQUEST}, "? question: Ship it?"),
    "callback-claimed": ({"routerId": "user:7"}, "• claimed by user:7"),
    "callback-submitted": (
        {"routerId": "user:7", "response": {"approved": False, "note": "add it"}},
        "• answered by user:7: not approved, add it",
    ),
    "callback-rejected": (
        {"routerId": "bot", "reason": "approved is missing"},
        "✗ answer refused to bot: approved is missing",
    ),
    "artifact:stored": ({"name": "a.tar", "byteLength": 1200}, "• file a.tar, 1,200 bytes"),
    "loop:wait": ({"waitMs": 5000}, "\u23f8 loop wait 5s"),
    "question.requested": ({"text": "?"}, "• question.requested"),
}


@pytest.mark.parametrize("kind", LINES)
def test_every_kind_is_one_line_in_words(kind: str) -> None:
    fields, line = LINES[kind]

    assert format_event({"kind": kind, "ts": 0, "path": [], **fields}) == line


def test_the_path_stands_before_the_mark() -> None:
    event = {"kind": "log", "path": ["g", "a"], "message": "hello"}

    assert format_event(event) == "g \u203a a • log hello"
    assert format_event(Event("log", ("g", "a"), {"message": "hello"})) == "g \u203a a • log hello"


def test_an_unknown_kind_gives_path_and_kind() -> None:
    assert format_event({"kind": "acme:blip", "path": ["g"], "x": [1]}) == "g • acme:blip"


def test_control_characters_become_spaces() -> None:
    event = {"kind": "log", "path": ["g\x1b[2J"], "message": "a\nb\x07c\u2028d\u202ee\x9bf"}

    assert format_event(event) == "g [2J • log a b c d e f"


def test_a_usage_line_tells_the_run_too_when_it_is_given() -> None:
    event = {"kind": "engine:usage", "model": "m", "usage": {"kind": "unknown"}, "failed": True}
    totals = {
        "inputTokens": 70,
        "outputTokens": 20,
        "cacheReadInputTokens": 9,
        "unmeasuredCalls": 1,
    }

    told = "✗ m usage unknown failed (run 70/20 tok, 9 tok from cache, 1 call with unknown usage)"
    assert format_event(event, totals) == told
    assert format_event(event, {**totals, "cacheReadInputTokens": 0, "unmeasuredCalls": 0}) == (
        "✗ m usage unknown failed (run 70/20 tok)"
    )
    assert "run" not in format_event({"kind": "log", "message": "x"}, totals)


def test_a_skipped_node_and_a_later_attempt_say_so() -> None:
    skip = {"kind": "dag:node", "node": "a", "phase": "skip", "outcome": PASS}
    again = {"kind": "dag:node", "node": "a", "phase": "start", "attempt": 2}

    assert format_event(skip) == "✓ node a skip (pass)"
    assert format_event(again) == "▸ node a start, attempt 2"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted(
    {name for fields, _ in LINES.values() for name in fields} | {"ts", "path", "reason", "kind"}
)
ANY_EVENT = st.fixed_dictionaries(
    {"kind": st.sampled_from([*LINES, "acme:blip"]) | JSON},
    optional={name: JSON for name in FIELDS if name != "kind"},
)


@given(event=ANY_EVENT, totals=JSON)
def test_any_json_event_is_one_line_without_control_characters(event: Any, totals: Any) -> None:
    line = format_event(event, totals)

    assert [mark for mark in line if unicodedata.category(mark) in ("Cc", "Zl", "Zp", "Cs")] == []
    line.encode()
