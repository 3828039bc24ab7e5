from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from runs.templatetags import json_tree, pages

if TYPE_CHECKING:
    from runs.kernel.jsonable import JSONValue


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h"), (172800, "2 d")],
)
def test_a_span_is_said_in_one_number_and_one_unit(seconds: int, words: str) -> None:
    assert pages.span_words(timedelta(seconds=seconds)) == words


def test_an_age_just_begun_is_now_and_none_is_nothing() -> None:
    assert pages.age(timezone.now()) == "now"
    assert pages.age(None) == ""


def test_a_deadline_says_what_is_left_and_then_what_it_is_over() -> None:
    assert pages.time_left(timezone.now() + timedelta(minutes=90, seconds=5)) == "1 h left"
    assert pages.time_left(timezone.now() - timedelta(minutes=5)) == "5 min over"


@pytest.mark.parametrize(
    ("status", "shape"),
    [("waiting_for_approval", "hand"), ("passed", "tick"), ("skipped", "dash"), ("new", "dash")],
)
def test_every_status_has_a_shape(status: str, shape: str) -> None:
    assert pages.shape(status) == shape


def test_an_age_ends_a_sentence_and_a_span_stands_alone() -> None:
    assert pages.ago(timezone.now()) == "just now"
    assert pages.ago(timezone.now() - timedelta(minutes=4)) == "4 min ago"
    assert pages.since(timezone.now() - timedelta(seconds=3)) == "3 s"


def test_a_digest_is_shortened_without_its_prefix() -> None:
    assert pages.short_digest("sha256:" + "ab" * 32) == "abababababab"


def texts(value: JSONValue) -> str:
    """What a reader sees of a drawn tree."""
    return " ".join(re.sub(r"<[^>]*>", " ", str(json_tree.json_tree(value))).split())


def test_a_tree_says_each_kind_in_its_words() -> None:
    drawn = texts({"items": [1, 0.5], "off": False, "none": None, "": "", "empty": [{}]})

    assert drawn == (
        "5 fields items 2 items 0 1 1 0.5 off false none null empty text empty 1 item 0 "
        "empty object"
    )


def test_a_tree_escapes_what_it_shows_and_spells_out_hidden_marks() -> None:
    drawn = str(json_tree.json_tree({"<b>": "<img src=x onerror=alert(1)>\u202e"}))

    assert "<img" not in drawn
    assert "<b>" not in drawn
    assert "&lt;U+202E&gt;" in drawn


def test_a_tree_stops_after_so_many_entries_and_says_so() -> None:
    drawn = str(json_tree.json_tree(list(range(20_000))))

    assert drawn.count("<li>") <= json_tree.ENTRIES
    assert "Cut after" in drawn


def test_a_tree_as_deep_as_json_may_be_is_drawn() -> None:
    deep: JSONValue = "x"
    for _ in range(250):
        deep = [deep]

    assert "x" in texts(deep)
