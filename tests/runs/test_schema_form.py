from __future__ import annotations

from typing import Any

import pytest
from django.http import QueryDict

from runs.inputs.forms import SchemaBoundField, SchemaForm


def posted(text: str) -> QueryDict:
    """The fields as a page sends them, with what stands in front of every name."""
    return QueryDict("&".join(f"f-{part}" for part in text.split("&") if part))


def one(declared: dict[str, Any], *, name: str = "f", required: bool = False) -> dict[str, Any]:
    return {"properties": {name: declared}, "required": [name] if required else []}


def response(schema: dict[str, Any], data: str) -> dict[str, Any]:
    form = SchemaForm(schema, posted(data))
    assert form.is_valid(), form.errors
    return form.response()


def drawn(form: SchemaForm, name: str) -> str:
    """How the page draws the field."""
    field = form[name]
    assert isinstance(field, SchemaBoundField)
    return field.widget_kind


def errors(schema: dict[str, Any], data: str) -> dict[str, list[str]]:
    form = SchemaForm(schema, posted(data))
    assert not form.is_valid()
    return {name: [str(fault) for fault in faults] for name, faults in form.errors.items()}


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ({"type": "boolean"}, "boolean"),
        ({"enum": ["a", "b"]}, "enum_buttons"),
        ({"enum": list("abcd")}, "enum_buttons"),
        ({"enum": list("abcde")}, "radios"),
        ({"enum": list("abcdef")}, "radios"),
        ({"enum": list("abcdefg")}, "select"),
        ({"type": "array", "items": {"enum": ["a"]}}, "multi"),
        ({"type": "integer"}, "number"),
        ({"type": "number"}, "number"),
        ({"type": "string"}, "text"),
        ({"type": "string", "maxLength": 1_001}, "long"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "object", "properties": {}}, "json"),
        ({"type": "array", "items": {"type": "string"}}, "json"),
        ({"type": ["string", "null"]}, "json"),
        ({"anyOf": [{"type": "string"}]}, "json"),
        ({}, "json"),
        (True, "json"),
    ],
)
def test_each_declaration_has_its_widget(declared: Any, kind: str) -> None:
    assert drawn(SchemaForm(one(declared)), "f") == kind


@pytest.mark.parametrize("name", ["note", "prompt", "description", "comment"])
def test_what_people_write_at_length_gets_room(name: str) -> None:
    assert drawn(SchemaForm(one({"type": "string"}, name=name)), name) == "long"


def test_a_required_boolean_can_be_no_and_cannot_be_nothing() -> None:
    schema = one({"type": "boolean"}, required=True)

    assert response(schema, "f=false") == {"f": False}
    assert response(schema, "f=true") == {"f": True}
    assert errors(schema, "") == {"f": ["This is required."]}
    assert errors(schema, "f=on") == {"f": ["This has to be yes or no."]}


def test_nothing_is_preselected() -> None:
    html = str(SchemaForm(one({"type": "boolean"}))["f"])

    assert "checked" not in html
    assert "checked" in str(SchemaForm(one({"type": "boolean", "default": False}))["f"])


def test_what_is_left_out_is_not_in_the_answer() -> None:
    schema = {
        "properties": {
            "yes": {"type": "boolean"},
            "number": {"type": "integer"},
            "text": {"type": "string"},
            "many": {"type": "array", "items": {"enum": ["a"]}},
            "json": {},
            "note": {"type": "string"},
        }
    }

    assert response(schema, "yes=&number=&text=&json=&note=+++") == {}


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("007", 7),
        ("-0", 0),
        ("0", 0),
        ("1.0", 1),
        ("1e3", 1000),
        (str(2**53 - 1), 2**53 - 1),
    ],
)
def test_whole_numbers(typed: str, value: int) -> None:
    form = SchemaForm(one({"type": "integer"}), {"f-f": typed})

    assert form.is_valid(), form.errors
    assert form.response() == {"f": value}
    assert type(form.response()["f"]) is int


@pytest.mark.parametrize(
    "typed",
    ["1.5", "abc", "1,5", "0x10", "NaN", "Infinity", "1e400", str(2**53 + 1), "\u0661", "1_0"],
)
def test_what_is_no_whole_number_stays_in_the_box(typed: str) -> None:
    form = SchemaForm(one({"type": "integer"}), {"f-f": typed})

    assert not form.is_valid()
    assert form["f"].value() == typed


@pytest.mark.parametrize(("typed", "value"), [("1.50", 1.5), ("-2e-3", -0.002), ("3", 3)])
def test_numbers(typed: str, value: float) -> None:
    form = SchemaForm(one({"type": "number"}), {"f-f": typed})

    assert form.is_valid()
    assert form.response() == {"f": value}


def test_enums_give_back_their_own_values() -> None:
    schema = one({"enum": ["a", 1, None, True]})

    assert [response(schema, f"f={place}")["f"] for place in range(4)] == ["a", 1, None, True]
    assert errors(schema, "f=4")
    assert response(one({"enum": ["a", "0"]}), "f=0") == {"f": "0"}
    assert errors(one({"enum": ["a", "0"]}), "f=1")


def test_several_of_an_enum() -> None:
    schema = one({"type": "array", "items": {"enum": ["a", "b", "c"]}})

    assert response(schema, "f=c&f=a") == {"f": ["c", "a"]}
    assert errors(schema, "f=z")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("{", "not JSON"),
        ("[NaN]", "no use as it is: the number is not finite"),
        ('{"a":1,"a":2}', "the key 'a' appears twice"),
        ("[" * 300 + "]" * 300, "no use as it is: the value goes more than 240 levels deep"),
        ("9007199254740993", "no use as it is"),
        ('"\\ud800"', "no use as it is"),
    ],
)
def test_json_is_read_strictly(typed: str, words: str) -> None:
    form = SchemaForm(one({"type": "object"}), {"f-f": typed})

    assert not form.is_valid()
    assert words in form.errors["f"][0]
    assert form["f"].value() == typed


def test_json_keeps_every_value() -> None:
    assert response(one({}), 'f={"a":[1,"%5Cu0000",null]}') == {"f": {"a": [1, "\0", None]}}


def test_text_is_kept_as_typed_but_for_the_ends_of_its_lines() -> None:
    assert response(one({"type": "string"}), "f=+a%0D%0Ab+") == {"f": " a\nb "}
    form = SchemaForm(one({"type": "string"}), {"f-f": "\ud800"})
    assert not form.is_valid()


def test_dates() -> None:
    schema = one({"type": "string", "format": "date"})

    assert response(schema, "f=2026-02-28") == {"f": "2026-02-28"}
    assert errors(schema, "f=2026-02-30")


def test_names_a_form_cannot_carry_are_carried_under_others() -> None:
    names = ("a b", "é", "__class__", "x" * 500)
    schema = {"properties": {name: {"type": "string"} for name in names}}
    form = SchemaForm(schema, {f"f-field-{index}": "x" for index in range(4)})

    assert form.is_valid()
    assert form.response() == dict.fromkeys(names, "x")


@pytest.mark.parametrize(
    "name",
    ["submit", "action", "getAttribute", "id", "elements", "claim_token", "digest", "once", "kept"],
)
def test_no_field_stands_in_the_place_of_the_forms_own_members_or_of_our_inputs(name: str) -> None:
    form = SchemaForm(one({"type": "string"}, name=name), {f"f-{name}": "x", name: "y"})

    (field,) = form
    assert (field.html_name, field.auto_id) == (f"f-{name}", f"id_f-{name}")
    assert form.is_valid()
    assert form.response() == {name: "x"}


def test_what_is_missing_and_what_does_not_fit_is_said_in_one_round() -> None:
    schema = {
        "properties": {
            "version": {"type": "string", "pattern": r"^\d+\.\d+$"},
            "count": {"$ref": "#/$defs/few"},
            "who": {"type": "string"},
            "fine": {"type": "string"},
        },
        "$defs": {"few": {"type": "array", "maxItems": 2}},
        "required": ["who", "gone"],
        "if": {"properties": {"who": {"const": "x"}}},
        "then": {"properties": {"fine": {"minLength": 10}}},
    }

    told = errors(schema, "version=new&count=[1,2,3]&fine=ok")

    assert told.keys() == {"version", "count", "who"}
    assert told["who"] == ["This is required."]


def test_a_schema_without_fields_takes_the_whole_answer_as_json() -> None:
    form = SchemaForm({}, {"f-response": '{"anything": 1}'})
    assert form.is_valid()
    assert form.response() == {"anything": 1}

    listed = SchemaForm({}, {"f-response": "[1]"})
    assert not listed.is_valid()
    assert "JSON object" in listed.errors["response"][0]


def test_a_workflow_without_parameters_has_an_empty_form() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    form = SchemaForm(schema, QueryDict("once=1"))

    assert list(form.fields) == []
    assert form.is_valid()
    assert form.response() == {}


def test_defaults_and_earlier_answers_fill_the_form() -> None:
    schema = {
        "properties": {
            "n": {"type": "integer", "default": 3},
            "pick": {"enum": [1, 2], "default": 2},
            "json": {"default": {"a": 1}},
        }
    }

    form = SchemaForm(schema)
    assert [form[name].value() for name in ("n", "pick", "json")] == ["3", "1", '{\n  "a": 1\n}']
    filled = SchemaForm(schema, given={"n": 9, "pick": 1})
    assert [filled[name].value() for name in ("n", "pick")] == ["9", "0"]


def test_labels_and_help_come_from_the_schema() -> None:
    schema = {
        "properties": {"dueDate": {"type": "string", "description": "When"}, "x": {"title": "Y"}}
    }
    form = SchemaForm(schema)

    assert (form["dueDate"].label, form["dueDate"].help_text) == ("Due date", "When")
    assert form["x"].label == "Y"


def test_later_faults_land_on_their_fields() -> None:
    form = SchemaForm(one({"type": "string"}), {"f-f": "x"})
    assert form.is_valid()

    form.add_faults([("f", "Too short."), ("zz", "Not asked for."), ("", "All wrong.")])

    assert form.errors["f"] == ["Too short."]
    assert form.non_field_errors() == ["zz: Not asked for.", "All wrong."]
    assert form["f"].value() == "x"
