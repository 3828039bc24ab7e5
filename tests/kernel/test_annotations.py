"""What people say about the lines of a change (gates.md G195-G197)."""

from __future__ import annotations

from typing import Any

import pytest

from runs.kernel import annotations as notes
from runs.kernel.answers import refusal
from runs.kernel.diffs import Diff, diff_of
from runs.kernel.interactions import wrapped_schema

ADA = {"kind": "human", "id": "ada"}
AT = "2026-08-28T09:15:02.118Z"


@pytest.fixture
def diff() -> Diff:
    found = diff_of({"src/a.py": {"old": "one\ntwo\n", "new": "one\nzwei\nthree\n"}})
    assert found is not None
    return found


def said(body: Any = "Why?", **anchor: Any) -> dict[str, Any]:
    return {"anchor": {"target": "src/a.py", "side": "new", "position": 2, **anchor}, "body": body}


def kept(diff: Diff, *given: Any) -> list[Any]:
    return list(notes.placed(given, diff, author=ADA, at=AT))


def test_an_annotation_is_kept_with_who_says_it_and_when(diff: Diff) -> None:
    forged = {**said("  Why?\n"), "author": {"kind": "human", "id": "bob"}, "createdAt": "then"}
    assert kept(diff, forged) == [
        {
            "anchor": {"target": "src/a.py", "side": "new", "position": 2},
            "body": "Why?",
            "author": ADA,
            "createdAt": AT,
        }
    ]


@pytest.mark.parametrize(
    "given",
    [
        said(target="src/b.py"),
        said(position=4),
        said(position=0),
        said(position=True),
        said(position="2"),
        said(position=1.0),
        said(side="old", position=3),
        said(side="both"),
        said(more=1),
        said(""),
        said(" \n"),
        said(3),
        {"body": "x"},
        {"anchor": {"target": "src/a.py", "side": "new"}, "body": "x"},
        "x",
        None,
    ],
)
def test_one_that_is_on_no_line_or_says_nothing_is_dropped(diff: Diff, given: Any) -> None:
    assert kept(diff, given, said("kept"))[0]["body"] == "kept"
    assert len(kept(diff, given, said("kept"))) == 1


def test_a_long_body_is_cut(diff: Diff) -> None:
    assert len(kept(diff, said("x" * 5000))[0]["body"]) == 4000


@pytest.mark.parametrize(
    ("decision", "count", "word"),
    [
        ("approved", 1, "approval"),
        ("changes-requested", 0, "line"),
        ("changes-requested", 501, "500"),
        ("approved", 501, "500"),
    ],
)
def test_a_decision_that_its_annotations_speak_against_is_refused_g196(
    decision: str, count: int, word: str
) -> None:
    assert word in (notes.disagreement(decision, count) or "")


def test_a_decision_that_agrees_is_taken_g196() -> None:
    assert notes.disagreement("approved", 0) is None
    assert notes.disagreement("changes-requested", 1) is None
    assert notes.disagreement("changes-requested", 500) is None
    assert notes.disagreement("changes-requested", 0, can_comment=False) is None


def test_the_prompt_tells_the_whole_and_then_every_line(diff: Diff) -> None:
    found = kept(diff, said("Why German?"), said("Was right.", side="old"))
    assert notes.composed(" Not yet.\n", found) == (
        "Not yet.\n\nsrc/a.py:2: Why German?\n\nsrc/a.py:2 (before the change): Was right."
    )
    assert notes.composed("", []) == ""


def test_a_review_of_lines_has_room_for_annotations_and_other_forms_have_none(diff: Diff) -> None:
    schema = wrapped_schema(notes.line_comments().response_schema, review=True)
    assert notes.takes_annotations(schema)
    others: list[Any] = [{}, {"properties": {"feedback": {"type": "object"}}}, None, []]
    for other in others:
        assert not notes.takes_annotations(other)
    answer = {
        "feedback": {"annotations": kept(diff, said())},
        "prompt": "x",
        "decision": "changes-requested",
    }
    assert refusal(schema, answer) is None
