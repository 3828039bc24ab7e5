"""Choices with room for something else, as a form without scripts sends them."""

from __future__ import annotations

from typing import Any

import pytest

from runs.inputs.forms import SchemaForm
from tests.runs.test_schema_form import drawn, errors, one, posted, response

OTHER: dict[str, Any] = {"type": "string", "anyOf": [{"enum": ["a", "b"]}, {"type": "string"}]}
OTHERS: dict[str, Any] = {"type": "array", "items": OTHER, "uniqueItems": True}


def test_choices_that_may_be_something_else_have_a_text_beside_them() -> None:
    assert drawn(SchemaForm(one(OTHER)), "f") == "radios_other"
    assert drawn(SchemaForm(one(OTHERS)), "f") == "multi_other"


@pytest.mark.parametrize("values", [[], [1, 2], ["a", ""], [None]])
def test_choices_that_are_no_texts_are_json(values: list[Any]) -> None:
    declared = {"type": "array", "items": {**OTHER, "anyOf": [{"enum": values}, OTHER["anyOf"][1]]}}

    assert drawn(SchemaForm(one(declared)), "f") == "json"


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        ("f=0", "a"),
        ("f=1&f-other=", "b"),
        ("f=other&f-other=new", "new"),
        ("f-other=+new+", "new"),
        ("f=other&f-other=a", "a"),
    ],
)
def test_one_is_chosen_or_written(sent: str, value: str) -> None:
    assert response(one(OTHER, required=True), sent) == {"f": value}


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        ("f=0&f=1", ["a", "b"]),
        ("f=1&f=other&f-other=new", ["b", "new"]),
        ("f-other=new", ["new"]),
        ("f=0&f-other=a", ["a"]),
    ],
)
def test_several_are_ticked_and_one_more_is_written(sent: str, value: list[str]) -> None:
    assert response(one(OTHERS, required=True), sent) == {"f": value}


@pytest.mark.parametrize("declared", [OTHER, OTHERS])
def test_what_is_left_out_or_wrong_is_told(declared: dict[str, Any]) -> None:
    assert response(one(declared), "f-other=+") == {}
    wrong = {
        "": "This is required.",
        "f=other": "Write what else it is.",
        "f=2": "This is not one of the choices.",
        "f=-1": "This is not one of the choices.",
        "f=a": "This is not one of the choices.",
        "f=%C2%B2": "This is not one of the choices.",
        "f=99999": "This is not one of the choices.",
    }
    for sent, words in wrong.items():
        assert errors(one(declared, required=True), sent) == {"f": [words]}


def test_a_choice_and_a_text_at_once_are_for_the_person_to_settle() -> None:
    told = errors(one(OTHER), "f=0&f-other=new")

    assert told == {"f": ["Choose Other for what you wrote, or take the text out."]}


@pytest.mark.parametrize(
    ("declared", "given", "sent"),
    [
        (OTHER, "b", "f=1"),
        (OTHER, "new", "f=other&f-other=new"),
        (OTHERS, ["b", "new"], "f=1&f=other&f-other=new"),
    ],
)
def test_an_earlier_answer_fills_the_form_as_if_it_were_typed(
    declared: dict[str, Any], given: Any, sent: str
) -> None:
    shown = SchemaForm(one(declared), given={"f": given})["f"]
    typed = SchemaForm(one(declared), posted(sent))["f"]

    assert shown.value() == typed.value()
    assert str(shown) == str(typed)
