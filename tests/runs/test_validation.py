from __future__ import annotations

import time
from typing import Any

import pytest

from runs.inputs.validation import (
    MAX_VALUE_TEXT,
    SchemaFault,
    check_schema,
    faults_of,
    with_defaults,
)


def only(schema: Any, value: Any) -> tuple[str, str]:
    """The one fault of the value."""
    faults = faults_of(schema, value)
    assert len(faults) == 1, faults
    return faults[0]


def field(declared: dict[str, Any], value: Any) -> str:
    """What is said about one field, or nothing."""
    faults = faults_of({"properties": {"f": declared}}, {"f": value})
    assert all(name == "f" for name, _ in faults)
    return " ".join(text for _, text in faults)


@pytest.mark.parametrize(
    ("declared", "wrong", "right", "words"),
    [
        ({"type": "string"}, 1, "a", "text"),
        ({"type": "boolean"}, 1, False, "yes or no"),
        ({"type": "integer"}, True, 1.0, "a whole number"),
        ({"type": "integer"}, 1.5, 0, "a whole number"),
        ({"type": "number"}, "1", 1.5, "a number"),
        ({"type": ["string", "null"]}, 1, None, "text or empty"),
        ({"type": "array"}, {}, [], "a list"),
        ({"type": "object"}, [], {}, "a JSON object"),
        ({"enum": ["a", 1]}, True, 1.0, "one of: a, 1"),
        ({"const": {"x": 1}}, {"x": 2}, {"x": 1}, '{"x":1}'),
        ({"minLength": 2}, "a", "ab", "at least 2 characters"),
        ({"minLength": 1}, "", "a", "at least 1 character."),
        ({"maxLength": 1}, "ab", "a", "at most 1 character."),
        ({"minimum": 3}, 2, 3, "3 or more"),
        ({"maximum": 3}, 4, 3, "3 at most"),
        ({"exclusiveMinimum": 3}, 3, 4, "more than 3"),
        ({"exclusiveMaximum": 3}, 3, 2, "less than 3"),
        ({"multipleOf": 5}, 7, 10, "a multiple of 5"),
        ({"pattern": "^a+$"}, "b", "aa", "the pattern ^a+$"),
        ({"format": "date"}, "2026-02-30", "2026-02-28", "a date such as"),
        ({"format": "date"}, "20260228", "2026-02-28", "a date such as"),
        ({"format": "date-time"}, "2026-02-28T10:00:00", "2026-02-28T10:00:00Z", "a time such as"),
        ({"format": "date-time"}, "2026-02-28", "2026-02-28t10:00:00.5+02:00", "a time such as"),
        ({"format": "email"}, "me", "me@example.com", "an e-mail address"),
        ({"format": "uri"}, "no link", "https://example.com/a?b#c", "a link such as"),
        ({"minItems": 1}, [], [1], "at least 1 item."),
        ({"maxItems": 1}, [1, 2], [1], "at most 1 item."),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], [1, True], "listed twice"),
        ({"not": {"type": "string"}}, "a", 1, "must not be"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, None, "none of the forms"),
        ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, 1, 1.5, "exactly one"),
        ({"contains": {"const": 1}}, [2], [1, 2], "is missing"),
    ],
)
def test_each_rule_has_its_words(
    declared: dict[str, Any], wrong: Any, right: Any, words: str
) -> None:
    assert words in field(declared, wrong)
    assert field(declared, right) == ""


def test_a_fault_inside_a_field_says_where() -> None:
    schema = {"properties": {"o": {"items": {"required": ["n"]}}}}

    assert only(schema, {"o": [{"n": 1}, {}]}) == ("o", "1/n: This is required.")


def test_every_missing_field_is_named_as_itself() -> None:
    schema = {"required": ["a", "b", "it's"]}

    assert [name for name, _ in faults_of(schema, {"b": 1})] == ["a", "it's"]


@pytest.mark.parametrize("value", [[], None, "x", 7])
def test_a_value_of_another_kind_is_a_fault_of_the_whole(value: Any) -> None:
    assert only({"type": "object"}, value) == ("", "This has to be a JSON object.")


def test_a_value_that_is_too_long_is_not_looked_at() -> None:
    assert "longer than" in only({}, {"a": "x" * MAX_VALUE_TEXT})[1]


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({"$ref": "https://example.com/x"}, "/$ref"),
        ({"properties": {"a": {"$dynamicRef": "other#x"}}}, "/properties/a/$dynamicRef"),
        ({"properties": {"a": {"minimum": "3"}}}, "properties/a/minimum"),
        ({"type": "nonsense"}, "type"),
        ({"items": {"pattern": "(?<=a)b"}}, "/items"),
        ({"patternProperties": {"(a)\\1": {}}}, "it"),
        ({"unevaluatedItems": False}, "it"),
    ],
)
def test_a_broken_schema_lets_nothing_pass(schema: dict[str, Any], part: str) -> None:
    with pytest.raises(SchemaFault, match=part.replace("$", "\\$")):
        check_schema(schema)

    assert "schema is broken" in only(schema, {})[1]


def test_a_property_that_is_called_pattern_is_no_pattern() -> None:
    check_schema({"properties": {"pattern": {"enum": ["("], "default": {"pattern": "("}}}})


def test_references_inside_the_schema_are_followed() -> None:
    schema = {"$defs": {"yes": {"const": True}}, "properties": {"a": {"$ref": "#/$defs/yes"}}}

    assert faults_of(schema, {"a": True}) == []
    assert only(schema, {"a": False})[0] == "a"
    assert "not in it" in only({"$ref": "#/$defs/no"}, {})[1]


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def doubling(levels: int) -> dict[str, Any]:
    """A schema whose every level is looked at twice."""
    named = {
        f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2}
        for number in range(levels)
    }
    return {"$defs": {**named, f"d{levels}": {}}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubling(60), {}),
        ({"$ref": "#"}, {}),
        ({"properties": {"a": {"$ref": "#"}}}, nested(240)),
        ({"properties": {"t": {"pattern": "(a+)+$"}}}, {"t": "a" * 5_000 + "!"}),
        ({"patternProperties": {"(a|a)*$": {"type": "string"}}}, {"a" * 5_000 + "!": 1}),
        (
            {"patternProperties": {"^(x+x+)+y$": {}}, "additionalProperties": False},
            {"x" * 5_000: 1},
        ),
        ({"properties": {"t": {"uniqueItems": True}}}, {"t": [{"a": n} for n in range(20_000)]}),
        ({"properties": {"t": {"items": {"enum": list(range(500))}}}}, {"t": [-1] * 20_000}),
    ],
)
def test_no_schema_and_no_value_keeps_the_check_busy(schema: Any, value: Any) -> None:
    began = time.process_time()

    faults_of(schema, value)

    assert time.process_time() - began < 20


def test_a_schema_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100):
        schema = {"not": schema}

    with pytest.raises(SchemaFault, match="levels deep"):
        check_schema(schema)


def test_there_is_an_end_to_the_list_of_faults() -> None:
    schema = {"required": [f"field-{number}" for number in range(1_000)]}

    assert len(faults_of(schema, {})) == 20


def test_defaults_fill_what_is_missing_and_nothing_else() -> None:
    schema = {"properties": {"a": {"default": 1}, "b": {"default": [2]}, "c": {}}}

    assert with_defaults(schema, {"a": None}) == {"a": None, "b": [2]}
