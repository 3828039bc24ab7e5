from __future__ import annotations

import dataclasses
import gc
import subprocess
import sys
from typing import Any

import pytest

from runs.kernel import gate
from runs.kernel.gate import (
    CallbackRequest,
    callback_request_digest,
    create_callback_gate,
    split_request_id,
    validate_callback_request,
)
from runs.kernel.jsonable import JsonValueError, canonical_json, parse_json, snapshot, thaw
from tests.kernel.questions import APPROVED_SCHEMA, definition, question


def nested(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = [value]
    return value


def test_a_request_has_exactly_eight_wire_fields() -> None:
    digest = "3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05"

    assert question().to_wire() == {
        "requestId": f"release-approval#1#{digest}",
        "gateId": "release-approval",
        "gateVersion": 1,
        "digest": digest,
        "decisionText": "Approve release abc123?",
        "responseSchema": APPROVED_SCHEMA,
        "input": {"revision": "abc123"},
        "presentation": {},
    }


def test_keywords_snake_case_and_camel_case_make_the_same_request() -> None:
    camel = {
        "gateId": "release-approval",
        "gateVersion": 1,
        "decisionText": "Approve release abc123?",
        "responseSchema": APPROVED_SCHEMA,
        "input": {"revision": "abc123"},
    }

    assert create_callback_gate(**definition()) == question() == create_callback_gate(camel)
    assert callback_request_digest(**definition()) == callback_request_digest(camel)
    assert len({question(), create_callback_gate(camel)}) == 1


def test_two_processes_give_the_same_id_whatever_the_presentation() -> None:
    code = (
        "from tests.kernel.questions import question;"
        "print(question(presentation={'theme': 'dark'}).request_id)"
    )
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert other.stdout.strip() == question().request_id


def test_presentation_is_kept_and_is_no_part_of_the_question() -> None:
    dark = question(presentation={"theme": "dark"})

    assert dark.presentation == {"theme": "dark"}
    assert dark.request_id == question().request_id
    assert dark != question()


@pytest.mark.parametrize(
    "change",
    [
        {"gate_id": "other"},
        {"gate_version": 2},
        {"decision_text": "Sure?"},
        {"response_schema": {}},
        {"input": None},
    ],
)
def test_a_changed_definition_is_another_question(change: dict[str, Any]) -> None:
    assert question(**change).request_id != question().request_id


def test_key_order_does_not_count_and_array_order_does() -> None:
    assert question(input={"a": 1, "b": 2}).digest == question(input={"b": 2, "a": 1}).digest
    assert question(input=[1, 2]).digest != question(input=[2, 1]).digest


@pytest.mark.parametrize("bad", ["", None, 1, b"a", ["a"]])
def test_a_gate_id_and_a_text_must_say_something(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"gate_?[iI]d"):
        question(gate_id=bad)
    with pytest.raises(ValueError, match=r"decision_?[tT]ext"):
        question(decision_text=bad)


@pytest.mark.parametrize("bad", [True, 0, -1, "1", 1.5, 1.0, None, 2**53])
def test_a_gate_version_is_a_whole_number_from_one(bad: Any) -> None:
    with pytest.raises(ValueError, match="gate_version"):
        question(gate_version=bad)


def test_the_greatest_version_and_blank_text_are_accepted() -> None:
    assert question(gate_version=2**53 - 1, decision_text=" ").gate_version == 2**53 - 1


@pytest.mark.parametrize("bad", [[], "x", 1, True])
def test_schema_and_presentation_are_objects(bad: Any) -> None:
    with pytest.raises(ValueError, match="response_schema"):
        question(response_schema=bad)
    with pytest.raises(ValueError, match="presentation"):
        question(presentation=bad)


def test_a_missing_schema_and_a_null_schema_are_refused() -> None:
    with pytest.raises(ValueError, match="response_schema"):
        question(response_schema=None)
    given = definition()
    del given["response_schema"]
    with pytest.raises(ValueError, match="response_schema is missing"):
        create_callback_gate(given)


def test_an_input_must_be_given_although_it_may_be_null() -> None:
    given = definition()
    del given["input"]

    with pytest.raises(ValueError, match="input is missing"):
        create_callback_gate(given)


def test_an_unknown_or_doubled_field_is_refused() -> None:
    with pytest.raises(ValueError, match="'colour'"):
        question(colour="red")
    with pytest.raises(ValueError, match="gate_id is given twice"):
        question(gateId="x")
    with pytest.raises(ValueError, match="not as both"):
        create_callback_gate(definition(), gate_id="x")  # type: ignore[call-overload]  # on purpose


@pytest.mark.parametrize("value", [2**53 + 1, 10**400, float("nan"), object()])
def test_an_input_that_is_not_json_is_refused_with_its_path(value: Any) -> None:
    with pytest.raises(JsonValueError) as refused:
        question(input={"n": value})

    assert refused.value.code == "INVALID_JSON_VALUE"
    assert refused.value.path == "/input/n"


def test_a_definition_leaves_room_for_its_wrapping() -> None:
    request = question(input=nested(250))

    wrapped = {"payload": {"event": {"request": request.to_wire()}}}
    assert canonical_json(wrapped)
    with pytest.raises(JsonValueError, match="250"):
        question(input=nested(251))
    with pytest.raises(JsonValueError, match="250"):
        question(input=nested(257))


@pytest.mark.parametrize("gate_id", ["a#b", "\u00fcn\u00ef/\u2026?x=1", "#", "#1#"])
def test_any_gate_id_can_be_read_back_from_the_request_id(gate_id: str) -> None:
    request = question(gate_id=gate_id)

    assert split_request_id(request.request_id) == (gate_id, 1, request.digest)


@pytest.mark.parametrize("text", ["a", "a#b", "a#b#c"])
def test_a_text_that_is_no_request_id_is_not_split(text: str) -> None:
    with pytest.raises(ValueError, match="not a request id"):
        split_request_id(text)


def test_a_request_does_not_follow_what_it_was_made_from() -> None:
    given = {"revision": ["abc123"]}
    request = question(input=given)
    given["revision"].append("x")

    assert request.input == {"revision": ["abc123"]}
    with pytest.raises(TypeError):
        request.input["revision"] = 1  # type: ignore[index]  # on purpose
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.digest = "x"  # type: ignore[misc]  # on purpose


def test_a_stored_request_reads_back_even_when_its_numbers_changed_spelling() -> None:
    request = question(input={"n": 1e16, "m": 1.0}, presentation={"theme": "dark"})

    read = validate_callback_request(parse_json(canonical_json(request.to_wire())))

    assert read == request
    assert CallbackRequest.from_wire(thaw(request.to_wire())) == request


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("requestId", "release-approval#1#" + "0" * 64),
        ("gateId", "other"),
        ("gateVersion", 2),
        ("gateVersion", True),
        ("gateVersion", 1.0),
        ("digest", "0" * 64),
        ("decisionText", "Approve everything?"),
        ("responseSchema", {}),
        ("input", None),
        ("presentation", None),
        ("presentation", []),
    ],
)
def test_an_edited_request_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name}|gate_version|presentation|changed after"):
        validate_callback_request({**question().to_wire(), name: value})


@pytest.mark.parametrize("value", [None, [], "x", {}, 1])
def test_what_is_no_request_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="The request"):
        validate_callback_request(value)


def test_a_missing_or_extra_request_field_is_refused_by_name() -> None:
    wire = thaw(question().to_wire())
    with pytest.raises(ValueError, match="askedAt"):
        validate_callback_request({**wire, "askedAt": 1})
    del wire["presentation"]
    with pytest.raises(ValueError, match="presentation"):
        validate_callback_request(wire)


def test_what_was_made_here_is_not_made_anew_and_whatever_else_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = question()
    wire = request.to_wire()
    other = snapshot(thaw(wire))
    monkeypatch.setattr(gate, "digest_hex", lambda value: "another digest")

    assert validate_callback_request(request) is request
    assert validate_callback_request(wire) == request
    assert validate_callback_request(wire).to_wire() is wire
    for unknown in (other, {**wire}, dataclasses.replace(request)):
        with pytest.raises(ValueError, match="changed after it was created"):
            validate_callback_request(unknown)


def test_nothing_is_kept_of_a_request_that_is_gone() -> None:
    before = len(gate._made)
    wire = question(input={"revision": "of this test alone"}).to_wire()
    assert len(gate._made) == before + 1

    del wire
    gc.collect()
    assert len(gate._made) <= before


def test_a_forged_request_object_is_refused() -> None:
    forged = dataclasses.replace(question(), decision_text="Approve everything?")

    with pytest.raises(ValueError, match="changed after it was created"):
        validate_callback_request(forged)


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({"properties": []}, "properties"),
        ({"properties": {"a": True}}, "properties.a"),
        ({"required": "approved"}, "required"),
        ({"required": ["a", 1]}, "required"),
        ({"allOf": {}}, "allOf"),
        ({"anyOf": [{}, 1]}, "anyOf"),
        ({"allOf": [{"anyOf": 1}]}, r"allOf\[0\]\.anyOf"),
        ({"properties": {"a": {"type": "string", "pattern": "("}}}, "properties.a.pattern"),
        ({"properties": {"a": {"type": "string", "pattern": 1}}}, "properties.a.pattern"),
        ({"properties": {"a": {"type": "string", "enum": "ab"}}}, "properties.a.enum"),
    ],
)
def test_a_schema_no_answer_could_pass_is_refused_at_creation(
    schema: dict[str, Any], part: str
) -> None:
    with pytest.raises(ValueError, match=part):
        question(response_schema=schema)


def test_keywords_the_contract_does_not_check_are_left_to_the_host() -> None:
    schema = {"properties": {"a": {"type": "array", "items": 1}}, "if": 3, "$ref": "x"}

    assert question(response_schema=schema).response_schema == schema
