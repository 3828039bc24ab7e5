from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from runs.templatetags import pages

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


def test_a_key_named_items_stays_a_key() -> None:
    assert pages.json_pairs({"items": [1], "b": 2}) == [("items", [1]), ("b", 2)]
    assert pages.json_pairs(["x"]) == [("0", "x")]
    assert pages.json_pairs("text") == []


def test_json_kinds_tell_true_from_one_and_long_text_from_short() -> None:
    values: list[JSONValue] = [None, True, 1, 0.5, "a", "a\nb", {}, []]
    kinds = [pages.json_kind(value) for value in values]
    assert kinds == ["null", "boolean", "number", "number", "string", "long", "object", "array"]


def test_a_pointer_escapes_what_would_split_it() -> None:
    assert pages.json_pointer("/a", "b/c~d") == "/a/b~1c~0d"
