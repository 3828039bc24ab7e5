"""The quick writers give what the careful ones give, and leave to them whatever they cannot."""

from __future__ import annotations

import enum
import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.fields import stored
from runs.kernel import chain, jsonable, plain
from runs.kernel.events import Event
from runs.kernel.frozen import MAX_DEPTH, FrozenDict, snapshot
from runs.kernel.jsonable import JsonValueError, canonical_json
from runs.kernel.plain import as_given, as_it_is, in_order, is_checked, is_plain


class Colour(enum.StrEnum):
    RED = "red"


class Word(str):
    __slots__ = ()


class Number(int):
    pass


# Signs, halves of pairs and what sorts in two ways stand close together here.
LETTERS = st.sampled_from(
    'ab"\\/\x00\x1f\x7f\n é\ud7ff\ud800\udfff\ue000\uffff\U00010000\U0010ffff'
)
TEXTS = st.text(LETTERS, max_size=4)
NUMBERS = (
    st.integers(-5, 5)
    | st.sampled_from([2**53 - 2, 2**53 - 1, 2**53, 2**53 + 1, -(2**53), 10**21, 10**400])
    | st.sampled_from([0.0, -0.0, 1.0, 1e21, 1e-7, 0.1, float("nan"), float("inf")])
)
ODD = st.sampled_from([Colour.RED, Word("w"), Number(3), b"x", object(), OrderedDict(b=1, a=2)])
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS | ODD
KEYS = TEXTS | st.sampled_from([Colour.RED, Word("w"), 1, None])


def _frozen(value: Any) -> Any:
    try:
        return snapshot(value)
    except JsonValueError:
        return value


ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | inner.map(_frozen)
    ),
    max_leaves=8,
)


def _said(write: Callable[[Any], str], value: Any) -> str:
    """The text, or the refusal in words."""
    try:
        return write(value)
    except (JsonValueError, UnicodeEncodeError) as error:
        return f"{type(error).__name__} {error}"


def _as_stored_before(value: Any) -> str:
    return json.dumps(snapshot(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@settings(max_examples=400, deadline=None)
@given(ANYTHING)
def test_the_canonical_text_is_what_the_rules_of_rfc_8785_give(value: Any) -> None:
    assert _said(canonical_json, value) == _said(jsonable._by_the_rules, value)


@settings(max_examples=400, deadline=None)
@given(ANYTHING)
def test_a_stored_text_is_that_of_the_frozen_copy(value: Any) -> None:
    assert _said(stored, value) == _said(_as_stored_before, value)


@settings(max_examples=1000, deadline=None)
@given(st.floats(1e-5, 1e17) | st.floats() | st.floats(0, 2e9).map(lambda given: round(given, 3)))
def test_a_number_is_written_as_the_rules_of_rfc_8785_write_it(number: float) -> None:
    for value in (number, -number, {"at": [number]}):
        assert _said(canonical_json, value) == _said(jsonable._by_the_rules, value)


def nested(depth: int, inner: Any = None) -> Any:
    value: Any = inner
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, MAX_DEPTH + 2])
@pytest.mark.parametrize("inner", [None, [], {}, snapshot([[]]), snapshot({"a": {"b": 1}})])
def test_both_ways_count_levels_alike(depth: int, inner: Any) -> None:
    value = nested(depth, inner)

    assert _said(canonical_json, value) == _said(jsonable._by_the_rules, value)
    assert _said(stored, value) == _said(_as_stored_before, value)


def test_a_value_that_contains_itself_is_refused_by_either_way() -> None:
    value: list[Any] = []
    value.append({"again": value})

    for write in (canonical_json, stored):
        with pytest.raises(JsonValueError, match="contains itself"):
            write(value)


def test_ordinary_values_take_the_quick_way() -> None:
    value = {"é": ["x", 1, True, None], "a": FrozenDict(b=[2**53 - 1, 0.25]), "text": "\U0001f600"}

    assert is_plain(value, MAX_DEPTH)
    assert in_order(value) == jsonable._by_the_rules(value)
    assert is_checked({**value, "share": 1.0}, MAX_DEPTH)
    assert as_given({"b": 0.5, "a": 1}) == '{"b":0.5,"a":1}'
    assert as_it_is({"b": 0.5, "a": 1}) == '{"b":0.5,"a":1}'


EVERY_CHARACTER = "".join(map(chr, (*range(0x20AD), 0xE000, 0xFEFF, 0xFFFF, 0x10000, 0x10FFFF)))


@settings(max_examples=300)
@given(
    st.recursive(
        st.floats(allow_nan=False, allow_infinity=False)
        | st.integers()
        | st.booleans()
        | st.none()
        | st.text()
        | st.just(EVERY_CHARACTER),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_the_quick_encoder_writes_what_pythons_own_writes(value: Any) -> None:
    if is_plain(value, MAX_DEPTH):
        assert as_it_is(value) == as_it_is(snapshot(value)) == as_given(value)
        assert in_order(value) == in_order(snapshot(value)) == plain._in_order(value)


@pytest.mark.parametrize("depth", [200, 254, 255, MAX_DEPTH])
def test_what_nests_deeper_than_the_quick_encoder_goes_is_written_all_the_same(depth: int) -> None:
    for value in (nested(depth, 1), snapshot(nested(depth, 1))):
        assert is_plain(value, MAX_DEPTH)
        assert as_it_is(value) == as_given(value)
        assert in_order(value) == plain._in_order(value)


def test_a_frozen_value_is_asked_once_and_still_counts_its_levels() -> None:
    for part, found in ((snapshot({"a": [1]}), True), (snapshot({"a": [1.0]}), False)):
        assert isinstance(part, FrozenDict)
        assert part.plain is None
        assert is_plain(part, 1) is False
        assert is_plain(part, 2) is is_plain(part, 2) is part.plain is found
        assert is_plain([part], 2) is False


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        -0.0,
        9.9e-5,
        1e15,
        2**53,
        "\ud800",
        {"\ue000": 1},
        {1: 2},
        Colour.RED,
        Word("w"),
        Number(1),
        b"x",
    ],
)
def test_what_two_writers_may_write_in_two_ways_takes_the_long_one(value: Any) -> None:
    assert not is_plain(value, MAX_DEPTH)
    assert not is_plain([{"in": value}], MAX_DEPTH)


def test_an_event_as_deep_as_one_may_be_has_a_hash() -> None:
    fields = nested(MAX_DEPTH, 1)

    stored(fields)
    assert len(chain.next_hash("", Event("log", (), fields))) == 64
