from __future__ import annotations

import copy
import enum
import json
import pickle
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.kernel.jsonable import (
    FrozenDict,
    JSONValue,
    JsonValueError,
    canonical_json,
    json_equal,
    parse_json,
    sha256_bytes,
    sha256_of,
    snapshot,
    thaw,
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


def nested(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = [value]
    return value


@settings(deadline=None)
@given(values)
def test_canonical_text_reads_back_as_the_same_value(value: JSONValue) -> None:
    text = canonical_json(value)

    assert canonical_json(parse_json(text)) == text
    assert parse_json(text) == thaw(value)


@settings(deadline=None)
@given(values)
def test_a_frozen_value_has_the_text_of_the_plain_one(value: JSONValue) -> None:
    frozen = snapshot(value)

    assert canonical_json(frozen) == canonical_json(value) == canonical_json(thaw(frozen))
    assert snapshot(frozen) is frozen
    assert frozen == value


@settings(deadline=None)
@given(st.dictionaries(texts, st.none()))
def test_keys_are_in_utf16_order(value: dict[str, None]) -> None:
    keys = [key for key, _ in json.loads(canonical_json(value), object_pairs_hook=list)]

    assert keys == sorted(value, key=lambda key: key.encode("utf-16-be"))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (1e16, "10000000000000000"),
        (10**16, "10000000000000000"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (10**21, "1e+21"),
        (-1.5e300, "-1.5e+300"),
        (1e-6, "0.000001"),
        (1.25e-5, "0.0000125"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (2**53, "9007199254740992"),
        (2**53 + 2, "9007199254740994"),
        (0.1, "0.1"),
    ],
)
def test_a_number_is_written_as_ecmascript_writes_it(number: float, text: str) -> None:
    assert canonical_json(number) == text


def test_a_large_integer_inside_a_value_is_written_as_its_double() -> None:
    assert canonical_json({"a": [10**22, 1], "b": True}) == '{"a":[1e+22,1],"b":true}'


def test_a_double_written_as_digits_it_does_not_hold_reads_back_as_that_double() -> None:
    double = 44030096935539632.0

    assert canonical_json(double) == "44030096935539630"
    assert parse_json("44030096935539630") == double
    with pytest.raises(JsonValueError):
        parse_json("44030096935539631")
    with pytest.raises(JsonValueError):
        canonical_json(44030096935539630)


@pytest.mark.parametrize(
    "number", [2**53 + 1, -(2**53) - 1, 10**400, pytest.param(10**5000, id="10**5000")]
)
def test_an_integer_no_double_holds_is_refused(number: int) -> None:
    with pytest.raises(JsonValueError, match=r"^/n: no double holds") as refused:
        canonical_json({"n": number})

    assert refused.value.path == "/n"
    assert refused.value.code == "INVALID_JSON_VALUE"


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        b"bytes",
        datetime(2026, 1, 1, tzinfo=UTC),
        Decimal(1),
        UUID(int=0),
        {1, 2},
        Colour.RED,
        Level.LOW,
        ...,
        object(),
        {1: "a"},
        {Colour.RED: 1},
        {None: 1},
        "\ud800",
        {"\udfff": 1},
    ],
)
def test_what_json_cannot_carry_is_refused(value: object) -> None:
    with pytest.raises(JsonValueError):
        canonical_json([value])


def test_text_is_written_raw_where_json_lets_it() -> None:
    text = '\b\t\n\f\r\x00\x1f"\\/\x7f\u2028\u2029\u00e9'

    assert canonical_json(text) == ('"\\b\\t\\n\\f\\r\\u0000\\u001f\\"\\\\/\x7f\u2028\u2029\u00e9"')


def test_the_path_of_a_bad_value_is_a_json_pointer() -> None:
    with pytest.raises(JsonValueError) as refused:
        snapshot({"a/b": [0, {"~": object()}]})

    assert refused.value.path == "/a~1b/1/~0"


def test_the_root_is_named_in_the_message_and_empty_in_the_path() -> None:
    with pytest.raises(JsonValueError, match=r"^<root>: ") as refused:
        canonical_json(object())

    assert refused.value.path == ""
    assert pickle.loads(pickle.dumps(refused.value)).path == ""


def test_a_value_that_contains_itself_is_refused() -> None:
    cycle: list[Any] = [1]
    cycle.append({"again": cycle})

    with pytest.raises(JsonValueError, match="contains itself") as refused:
        canonical_json(cycle)

    assert refused.value.path == "/1/again"


def test_the_same_object_twice_is_no_cycle() -> None:
    shared = [1]

    assert canonical_json([shared, shared, {"a": shared}]) == '[[1],[1],{"a":[1]}]'


def test_256_levels_are_accepted_and_257_are_not() -> None:
    assert canonical_json(nested(256)).count("[") == 256
    with pytest.raises(JsonValueError, match="256 levels"):
        canonical_json(nested(257))


def test_a_frozen_part_still_counts_its_levels() -> None:
    part = snapshot(nested(200))

    assert snapshot([part], max_depth=201) == [part]
    with pytest.raises(JsonValueError):
        snapshot([part], max_depth=200)


def test_a_hundred_thousand_levels_are_an_error_and_not_a_crash() -> None:
    with pytest.raises(JsonValueError):
        canonical_json(nested(100_000))
    with pytest.raises(JsonValueError, match="levels"):
        parse_json("[" * 100_000 + "]" * 100_000)


def test_a_snapshot_does_not_follow_its_source() -> None:
    source: dict[str, Any] = {"a": [1, {"b": 2}]}
    frozen = snapshot(source)
    source["a"][1]["b"] = 3

    assert frozen == {"a": [1, {"b": 2}]}


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.__setitem__("a", 1),
        lambda d: d.__delitem__("a"),
        lambda d: d.clear(),
        lambda d: d.pop("a"),
        lambda d: d.popitem(),
        lambda d: d.setdefault("b", 1),
        lambda d: d.update(b=1),
        lambda d: d.__ior__({"b": 1}),
    ],
)
def test_a_frozen_object_refuses_every_change(change: Any) -> None:
    frozen = snapshot({"a": 1})

    with pytest.raises(TypeError, match="thaw"):
        change(frozen)

    assert frozen == {"a": 1}


def test_a_frozen_value_survives_copies_pickles_and_plain_json() -> None:
    frozen = snapshot({"a": [1, {"b": None}]})

    assert copy.deepcopy(frozen) is frozen
    assert copy.copy(frozen) is frozen
    again = pickle.loads(pickle.dumps(frozen))
    assert again == frozen
    assert isinstance(again, FrozenDict)
    assert json.loads(json.dumps(frozen)) == frozen


def test_a_frozen_object_made_by_hand_is_checked_too() -> None:
    assert snapshot(made := FrozenDict(a=[1])) is made
    with pytest.raises(JsonValueError):
        FrozenDict(a=object())


def test_thaw_gives_plain_values_to_change() -> None:
    plain = thaw(snapshot({"a": (1, 2)}))
    plain["a"].append(3)

    assert plain == {"a": [1, 2, 3]}
    assert type(plain) is dict
    assert type(plain["a"]) is list


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        '{"a": Infinity}',
        "[-Infinity]",
        "1e400",
        "9" * 5000,
        "9007199254740993",
        '{"a": 1, "a": 2}',
        '\ufeff{"a": 1}',
        b'\xef\xbb\xbf{"a": 1}',
        '"\\ud800"',
        '{"\\udc00": 1}',
        b'"\xff"',
        "not json",
        "",
        '"a\nb"',
        "[" * 258 + "]" * 258,
        "1 2",
    ],
)
def test_wire_text_is_read_strictly(text: str | bytes) -> None:
    with pytest.raises(JsonValueError):
        parse_json(text)


def test_a_bad_number_on_the_wire_is_named_by_its_path() -> None:
    with pytest.raises(JsonValueError) as refused:
        parse_json(b'{"a": [0, NaN]}')

    assert refused.value.path == "/a/1"


def test_wire_text_may_be_text_or_bytes_and_have_its_own_depth() -> None:
    assert parse_json('{"a": "\\ud83d\\ude80"}') == {"a": "\U0001f680"}
    assert parse_json(b" [1, 1.5, true, null] ") == [1, 1.5, True, None]
    with pytest.raises(JsonValueError, match="2 levels"):
        parse_json("[[[1]]]", max_depth=2)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (False, 0, False),
        (0.0, -0.0, True),
        ({"a": 1, "b": [2]}, {"b": (2,), "a": 1.0}, True),
        ([1, True], [1, 1], False),
        (None, False, False),
        ("1", 1, False),
        ("\u00e9", "e\u0301", False),
    ],
)
def test_equality_is_of_json_values(left: Any, right: Any, equal: bool) -> None:
    assert json_equal(left, right) is equal


def test_digests_of_small_values_are_pinned() -> None:
    assert sha256_of({}) == (
        "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    )
    assert sha256_of(None) == (
        "sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"
    )
    assert sha256_of({"verdict": "pass"}) == (
        "sha256:f5d6f98b22d346a32b0be68e2561b17913ff64e9b15a7c1e12f41b7c697ae1ac"
    )
    assert sha256_bytes(b"approved output") == (
        "sha256:c4c3dd027efe486b7d435025aa372da4649226c35c809c4cb6629fc139ff854a"
    )


def test_the_gate_contract_loads_no_django() -> None:
    code = "import sys, runs.drivers.callbacks; sys.exit('django' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
