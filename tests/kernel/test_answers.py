from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.kernel.answers import check_schema, refusal
from runs.kernel.patterns import PatternError, compile_pattern
from tests.kernel.questions import APPROVED_SCHEMA


def field(**declared: Any) -> dict[str, Any]:
    return {"properties": {"f": declared}}


@pytest.mark.parametrize("response", [None, [], "x", 1, True, [{"approved": True}]])
def test_a_response_is_an_object_whatever_the_schema_says(response: Any) -> None:
    assert refusal({"type": "array"}, response)
    assert refusal({}, response)


def test_the_schemas_own_type_is_not_consulted() -> None:
    assert refusal({"type": "array"}, {}) is None


def test_an_empty_schema_accepts_any_object() -> None:
    assert refusal({}, {"anything": [1]}) is None


@pytest.mark.parametrize(
    "response", [{}, {"approved": 1}, {"approved": None}, {"approved": "true"}]
)
def test_a_wrong_answer_is_refused_and_its_field_named(response: dict[str, Any]) -> None:
    assert "approved" in str(refusal(APPROVED_SCHEMA, response))


def test_the_first_missing_name_in_list_order_is_told() -> None:
    assert str(refusal({"required": ["b", "a"]}, {})).startswith("b ")
    assert refusal({"required": ["a"]}, {"a": None}) is None


@pytest.mark.parametrize(
    ("kind", "accepted", "refused"),
    [
        ("string", ["", "x"], [1, None, True, []]),
        ("boolean", [True, False], [0, 1, "true", None]),
        ("number", [1, 1.5, -0.0], [True, "1", None]),
        ("integer", [1, 1.0, 2**53], [1.5, True, "1"]),
        ("object", [{}], [[], None, "{}"]),
        ("array", [[], (1,)], [{}, "x", None]),
        ("null", [None], [False, 0, "", {}]),
        (["string", "null"], ["x", None], [1, True]),
        ("date", [], ["2026-01-01", None, 1]),
        (["date", "string"], ["x"], [1]),
        ([], [], ["x", None]),
        (7, [], ["x", 7]),
    ],
)
def test_types_are_those_of_json(kind: Any, accepted: list[Any], refused: list[Any]) -> None:
    for value in accepted:
        assert refusal(field(type=kind), {"f": value}) is None
    for value in refused:
        assert "f is not of type" in str(refusal(field(type=kind), {"f": value}))


def test_undeclared_absent_and_untyped_fields_are_accepted() -> None:
    schema: dict[str, Any] = {
        "properties": {"a": {"type": "string"}, "b": {"enum": [1], "pattern": "x"}}
    }

    assert refusal(schema, {"b": "anything", "zzz": 1}) is None


def test_only_own_keys_count() -> None:
    response = {"__class__": 1, "constructor": 2, "toString": 3, "__proto__": 4}

    assert refusal(APPROVED_SCHEMA, {**response, "approved": True}) is None
    assert "__class__" in str(refusal({"required": ["__class__"]}, {}))


def test_nested_rules_are_left_to_the_host() -> None:
    nested: dict[str, Any] = {
        "type": "object",
        "properties": {"n": {"type": "number"}},
        "required": ["n"],
    }
    schema: dict[str, Any] = {
        "properties": {"o": nested, "s": {"type": "string", "minLength": 5}},
        "additionalProperties": False,
        "not": {},
    }

    assert refusal(schema, {"o": {"n": "x"}, "s": "x", "extra": 1}) is None
    assert refusal(schema, {"o": {}}) is None


@pytest.mark.parametrize(
    ("enum", "value", "accepted"),
    [
        ([1], True, False),
        ([True], 1, False),
        ([1], 1.0, True),
        ([{"a": [1]}], {"a": [1.0]}, True),
        ([{"a": [1]}], {"a": [True]}, False),
        ([], 1, False),
    ],
)
def test_enum_compares_json_values(enum: list[Any], value: Any, accepted: bool) -> None:
    schema = field(type=["number", "boolean", "object"], enum=enum)

    assert (refusal(schema, {"f": value}) is None) is accepted


def test_a_pattern_is_searched_for_in_text_only() -> None:
    schema = field(type=["string", "null"], pattern="b+")

    assert refusal(schema, {"f": "abc"}) is None
    assert refusal(schema, {"f": None}) is None
    assert "f does not match" in str(refusal(schema, {"f": "ac"}))
    assert refusal(field(type="string", pattern="\\S"), {"f": " \n"})


def test_all_of_needs_every_member_and_any_of_needs_one() -> None:
    yes: dict[str, Any] = {"properties": {"d": {"type": "string", "enum": ["yes"]}}}
    no: dict[str, Any] = {
        "properties": {"d": {"type": "string", "enum": ["no"]}},
        "required": ["why"],
    }

    assert refusal({"allOf": [yes, {"required": ["d"]}]}, {"d": "yes"}) is None
    assert "d is required" in str(refusal({"allOf": [yes, {"required": ["d"]}]}, {}))
    assert refusal({"anyOf": [yes, no]}, {"d": "no", "why": "x"}) is None
    assert "why" in str(refusal({"anyOf": [yes, no]}, {"d": "no"}))
    assert refusal({"anyOf": []}, {})
    assert refusal({"allOf": []}, {}) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": []},
        {"properties": {"other": 1}},
        {"required": "f"},
        {"required": ["f", 1]},
        {"allOf": {}},
        {"allOf": [1]},
        {"anyOf": "x"},
        field(type="string", pattern="("),
        field(type="string", pattern=None),
        field(type="string", enum="text"),
        {"allOf": [{"properties": 1}]},
    ],
)
def test_a_malformed_schema_refuses_the_answer_and_the_gate(schema: dict[str, Any]) -> None:
    assert refusal(schema, {"f": "text"})
    with pytest.raises(ValueError, match=r"^response_schema"):
        check_schema(schema)


def test_the_checks_run_in_their_order() -> None:
    schema: dict[str, Any] = {
        "allOf": [{"required": ["first"]}],
        "anyOf": [{"required": ["second"]}],
        "properties": {
            "a": {"type": "string", "pattern": "x", "enum": ["xy"]},
            "b": {"type": "string"},
        },
        "required": ["third"],
    }
    response: dict[str, Any] = {"b": 1, "a": 1}
    reasons = [refusal(schema, response)]
    for name in ("first", "second", "third"):
        response[name] = True
        reasons.append(refusal(schema, response))
    for value in ({"b": ""}, {"a": "n"}, {"a": "x"}, {"a": "xy"}):
        response |= value
        reasons.append(refusal(schema, response))

    named = ["first", "second", "third", "b is", "a is", "a does not", "a is not one of", "None"]
    assert all(name in str(reason) for name, reason in zip(named, reasons, strict=True))


HUMAN_REVIEW: dict[str, Any] = {
    "type": "object",
    "properties": {
        "feedback": {"type": "object"},
        "prompt": {"type": "string"},
        "decision": {"type": "string", "enum": ["approved", "changes-requested"]},
    },
    "required": ["feedback", "prompt", "decision"],
    "anyOf": [
        {"properties": {"decision": {"type": "string", "enum": ["approved"]}}},
        {
            "properties": {
                "decision": {"type": "string", "enum": ["changes-requested"]},
                "prompt": {"type": "string", "pattern": "\\S"},
            }
        },
    ],
}


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        ({"decision": "approved", "prompt": ""}, True),
        ({"decision": "changes-requested", "prompt": "shorter"}, True),
        ({"decision": "changes-requested", "prompt": "  "}, False),
        ({"decision": "yes", "prompt": "x"}, False),
        ({"prompt": "x"}, False),
    ],
)
def test_a_human_review_asks_for_words_only_with_changes(
    changes: dict[str, Any], accepted: bool
) -> None:
    assert (refusal(HUMAN_REVIEW, {"feedback": {}, **changes}) is None) is accepted


patterns = st.recursive(
    st.sampled_from(["a", "b", ".", r"\d", r"\W", "[^a]", "[a-c1]", r"\b", "^", "x?", r"\s", ""]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+?", "?", "{2}", "{1,3}"])).map(
            lambda two: f"({two[0]}){two[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(patterns, st.text("abc1 _\n\u00e9", max_size=12), st.booleans())
def test_a_pattern_finds_what_the_standard_library_finds(
    pattern: str, text: str, to_the_end: bool
) -> None:
    end = r"\Z" if to_the_end else ""

    assert compile_pattern(pattern + end).search(text) is bool(re.search(pattern + end, text))


def test_the_dollar_is_the_very_end_of_the_text() -> None:
    assert compile_pattern("^a$").search("a")
    assert not compile_pattern("^a$").search("a\n")


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(.*)*b", "a*a*a*a*a*a*a*b"])
def test_a_pattern_that_hangs_other_matchers_is_answered(pattern: str) -> None:
    assert not compile_pattern(pattern).search("a" * 5_000 + "!")


def test_a_text_too_long_for_its_pattern_is_refused_and_not_tried() -> None:
    schema = field(type="string", pattern="^.{1,900}$")

    assert "too long" in str(refusal(schema, {"f": "a" * 1_000_000}))


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)b",
        "(?<!a)b",
        r"(a)\1",
        "(?>a)",
        "a++",
        "(?i)a",
        "(?i:a)",
        "(",
        "[z-a]",
        "a{1,5000}",
        "((a{1,90}){1,90}){1,90}",
        "a" * 1_001,
    ],
)
def test_a_pattern_without_a_bounded_check_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


def test_a_pattern_nested_too_deeply_is_refused_and_crashes_nothing() -> None:
    with pytest.raises(PatternError, match="nests"):
        compile_pattern("(" * 499 + "a" + ")" * 499)
