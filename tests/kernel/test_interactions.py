from __future__ import annotations

from typing import Any

import pytest

from runs.kernel import interactions
from runs.kernel.answers import refusal
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.gate import create_callback_gate
from runs.kernel.graph import LeafShape
from runs.kernel.interactions import Interaction, to_interaction, wrapped_schema
from runs.kernel.jsonable import canonical_json
from runs.kernel.outcomes import Outcome

APPLICATION: dict[str, Any] = {
    "type": "object",
    "properties": {"feedback": {"type": "object"}, "prompt": {"type": "string"}},
    "required": ["feedback", "prompt"],
}


def test_the_schema_of_a_human_review_is_the_printed_one() -> None:
    assert canonical_json(wrapped_schema(APPLICATION, review=True)) == canonical_json(
        {
            "type": "object",
            "properties": {
                "feedback": {"type": "object"},
                "prompt": {"type": "string"},
                "decision": {"type": "string", "enum": ["approved", "changes-requested"]},
            },
            "required": ["feedback", "prompt", "decision"],
            "allOf": [APPLICATION],
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
    )


def test_the_schema_of_a_question_without_a_form_is_the_printed_one() -> None:
    assert canonical_json(wrapped_schema({}, review=False)) == canonical_json(
        {
            "allOf": [{}],
            "type": "object",
            "properties": {"feedback": {}, "prompt": {"type": "string", "pattern": "\\S"}},
            "required": ["feedback", "prompt"],
        }
    )


def test_the_request_of_a_human_review_has_the_printed_digest() -> None:
    about = {
        "requester": interactions.requester(("audience",), "0" * 64, 1),
        "material": {"draft": "draft 1"},
    }
    # The printed gate id holds a workspace; ours is relative to the run.
    printed = "audience-review:771f4d81098186e6cd1dec33bd856a78b5f2bd38b0c644888090a7e11faef5ac"
    request = create_callback_gate(
        gate_id=printed,
        gate_version=1,
        decision_text="Is this ready?",
        response_schema=wrapped_schema(APPLICATION, review=True),
        input=about,
    )
    assert request.digest == "3f33807f31d4089693b4d9e4f1de8a7fa8880bc1f00de8ea19b5260b89e4d5d9"


def test_a_gate_is_named_by_its_binding_and_the_place_in_the_run() -> None:
    one = interactions.gate_id("review", ("flow", "write"))
    assert one == interactions.gate_id("review", ("flow", "write"))
    assert one.startswith("review:")
    assert len(one) == len("review:") + 64
    assert one != interactions.gate_id("review", ("flow", "check"))
    assert one != interactions.gate_id("other", ("flow", "write"))


@pytest.mark.parametrize(
    ("response", "word"),
    [
        ([], "object"),
        ({"prompt": "x"}, "feedback"),
        ({"feedback": None}, "prompt"),
        ({"feedback": None, "prompt": 3}, "prompt"),
        ({"feedback": None, "prompt": " \n"}, "prompt"),
        ({"feedback": None, "prompt": "", "decision": "changes-requested"}, "prompt"),
        ({"feedback": None, "prompt": "x", "decision": "yes"}, "decision"),
        ({"feedback": None, "prompt": "x", "decision": None}, "decision"),
        ({"feedback": None, "prompt": "x", "decision": True}, "decision"),
        ({"feedback": None, "prompt": "x", "decision": ["approved"]}, "decision"),
    ],
)
def test_what_is_no_response_is_refused_by_name(response: Any, word: str) -> None:
    assert word in (interactions.response_fault(response) or "")
    with pytest.raises(LoopError) as refused:
        interactions.checked_response(response)
    assert refused.value.code == "VALIDATION"


@pytest.mark.parametrize(
    "response",
    [
        {"feedback": None, "prompt": "x"},
        {"feedback": {}, "prompt": "", "decision": "approved"},
        {"feedback": [1], "prompt": "x", "decision": "changes-requested", "more": {"kept": 1}},
    ],
)
def test_a_response_is_kept_whole(response: Any) -> None:
    assert canonical_json(interactions.checked_response(response)) == canonical_json(response)


@pytest.mark.parametrize(
    ("response", "word"),
    [
        ({"feedback": {}, "prompt": " ", "decision": "changes-requested"}, "prompt"),
        ({"feedback": {}, "prompt": "x"}, "decision"),
        ({"feedback": {}, "prompt": "x", "decision": "yes"}, "decision"),
        ({"feedback": 3, "prompt": "x", "decision": "approved"}, "feedback"),
    ],
)
def test_the_question_itself_refuses_what_is_no_review(response: Any, word: str) -> None:
    assert word in (refusal(wrapped_schema(APPLICATION, review=True), response) or "")


def test_an_approval_needs_no_words() -> None:
    approved = {"feedback": {}, "prompt": "", "decision": "approved"}
    assert refusal(wrapped_schema(APPLICATION, review=True), approved) is None


def test_the_rules_of_the_application_bind_beside_ours() -> None:
    schema = wrapped_schema(
        {
            "properties": {
                "prompt": {"type": "string", "enum": ["ship", "mend"]},
                "channel": {"type": "string", "enum": ["a", "b"]},
            },
            "anyOf": [{"required": ["channel"]}, {"required": ["other"]}],
        },
        review=True,
    )
    yes = {"feedback": {}, "prompt": "ship", "decision": "approved", "channel": "a"}
    assert refusal(schema, yes) is None
    assert "prompt" in (refusal(schema, {**yes, "prompt": "hm"}) or "")
    assert "channel" in (refusal(schema, {**yes, "channel": "c"}) or "")
    without = {name: value for name, value in yes.items() if name != "channel"}
    assert "anyOf" in (refusal(schema, without) or "")


def test_required_names_are_not_doubled() -> None:
    schema = wrapped_schema({"required": ["prompt", "more"]}, review=True)
    assert schema["required"] == ["prompt", "more", "feedback", "decision"]


def test_a_schema_that_leaves_no_room_for_a_decision_is_refused() -> None:
    closed = {**APPLICATION, "additionalProperties": False}
    with pytest.raises(DeclarationError, match="decision"):
        wrapped_schema(closed, review=True)
    assert wrapped_schema(closed, review=False)["additionalProperties"] is False


def test_only_an_explicit_approval_passes() -> None:
    approved = {"feedback": {"stars": 5}, "prompt": "", "decision": "approved"}
    passed = interactions.outcome_of_review(approved)
    assert (passed.status, passed.data) == ("pass", approved)
    rejected = {"feedback": {}, "prompt": "Shorter.", "decision": "changes-requested"}
    for response in (rejected, {"feedback": {}, "prompt": "Shorter."}):
        failed = interactions.outcome_of_review(response)
        assert (failed.status, failed.summary, failed.data) == ("fail", "Shorter.", response)
        assert failed.revision is not None
        assert failed.revision.target is None
        assert [item.to_json() for item in failed.revision.findings] == [
            {"evidence": "Shorter.", "severity": "block"}
        ]


def test_secret_looking_words_do_not_stand_in_what_is_listed() -> None:
    outcome = interactions.outcome_of_review({"feedback": {}, "prompt": "token=abcdefgh is there"})
    assert "abcdefgh" not in str(outcome.summary)
    assert outcome.revision is not None
    assert "abcdefgh" not in outcome.revision.findings[0].evidence


def test_the_feedback_of_a_review_is_its_whole_response() -> None:
    response = {"feedback": {"a": 1}, "prompt": "More.", "decision": "changes-requested"}
    review = interactions.outcome_of_review(response)
    assert interactions.feedback_of(review) == response
    assert interactions.feedback_of(None) is None
    assert interactions.feedback_of(Outcome(status="fail", data={"approved": False})) is None


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"id": " ", "response_schema": {}}, "id"),
        ({"id": "x"}, "response_schema"),
        ({"id": "x", "response_schema": []}, "x"),
        ({"id": "x", "response_schema": {"properties": 3}}, "properties"),
        ({"id": "x", "response_schema": {}, "answer": "no"}, "answer"),
        ({"id": "x", "response_schema": {}, "more": 1}, "more"),
        ("x", "interaction"),
    ],
)
def test_an_interaction_that_cannot_be_is_refused(given: Any, word: str) -> None:
    with pytest.raises(DeclarationError, match=word):
        to_interaction(given)


def test_an_interaction_may_be_written_as_a_mapping() -> None:
    given = to_interaction({"id": "x", "responseSchema": {"required": ["a"]}})
    assert given == Interaction("x", {"required": ["a"]})
    assert to_interaction(given) is given


def test_a_step_is_known_by_the_names_it_answers_under() -> None:
    bound = Interaction("desk", {})
    leaf = LeafShape(kind="human-review", label="check", extra={"interaction": bound.to_json()})
    assert interactions.routers_of(leaf) == {"check:answer", "interaction:desk"}
    assert interactions.routers_of(LeafShape(kind="job", label="x")) == {"x:answer"}
