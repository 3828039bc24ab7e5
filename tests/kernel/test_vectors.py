"""Digests that two independent implementations agree on. They never change."""

from __future__ import annotations

from typing import Any

import pytest

from runs.kernel.gate import callback_request_digest, create_callback_gate
from tests.kernel.questions import definition

APPROVED = {"approved": {"type": "boolean"}}
WITH_NOTE = {**APPROVED, "note": {"type": "string"}}


def schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


VECTORS: list[tuple[str, dict[str, Any], str]] = [
    ("V1", {}, "3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05"),
    (
        "V1 shown another way",
        {"presentation": {"theme": "dark"}},
        "3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05",
    ),
    (
        "V2",
        {"input": {"revision": "def456"}},
        "db5ce4553aa517b7e15dbd140c248c52e49832d4de3ef265b8fd6464dcb74a23",
    ),
    (
        "V3",
        {"gate_version": 2},
        "0587a234d7e8a184a6ecbf5ade27f0d32db47e82ad16fab42faee4ad0cb4e5d0",
    ),
    (
        "V4",
        {"decision_text": "Approve now?"},
        "ea9831d8aa15c0dd3c62359be396b830905f686f234b71502a42531279299c22",
    ),
    (
        "V5",
        {"response_schema": schema(APPROVED, "approved", "note")},
        "cf251c5fed767a1ec05938a69ba0752f09f6710b8f52174ac81e4226fbac98ae",
    ),
    (
        "V6",
        {"response_schema": schema(WITH_NOTE, "approved", "note")},
        "1ae81583b95dbd25540f6e59b8d2b4c343988e99f61807ae6bce4a48b7a5bf4f",
    ),
    (
        "V7",
        {"response_schema": schema(WITH_NOTE, "note", "approved")},
        "61262908f2b6f998b5e4507075c777ad391a8edc1da914ed5becb74f634b1e5a",
    ),
    ("V8", {"input": None}, "c3f6d61ec7ad0b7709d66e5e6f20c5a1fe556b7f93eba4d3510f4abfba41dc7b"),
    ("V9", {"input": {}}, "a7d420fa97037ff81246c16104be3876f26de56385b2ccfc21eb97baefa8b3ea"),
    (
        "V10",
        {"input": {"titre": "R\u00e9sum\u00e9 \u2014 \u2713 \U0001f680"}},
        "4bfcbd8eeee50268062f57facac67c53e540b2256a82ef00471f5404139369c4",
    ),
    (
        "V11",
        {"decision_text": "Approve \u201cv2\u201d?"},
        "5e4e0e808220409b6f745229ccc4fa2b717d543b3fd61b96827f41ebbfc686f1",
    ),
    (
        "V12",
        {"input": {"name": "\u00e9"}},
        "f7f22233c08151dd53fa7de9f0c0a66047f284bc44ab1b725c4eca5cf9deefa8",
    ),
    (
        "V13",
        {"input": {"name": "e\u0301"}},
        "af27106f2651504aafaf001f9e019c097b1bfaa36cb65e575ce51f7ae713e1be",
    ),
    (
        "V14",
        {"input": {"a": 3, "\ue000": 1, "\U0001f680": 2}},
        "4e42e618d56c0fb9cc2871ae3c7d15f2b9ef3567e06526782c16eb4eaefd34e0",
    ),
    (
        "V15",
        {
            "input": {
                "a": 1.0,
                "b": 0.1,
                "c": 1e21,
                "d": 1e-7,
                "e": -0.0,
                "f": 1e16,
                "g": 123456789.125,
                "h": 5e-324,
                "i": 1.7976931348623157e308,
            }
        },
        "e1c30f3ff5dd4de5e5def4e9aa0a71c1b4d13141e8a9cae1df4cd90e60d4faf9",
    ),
    (
        "V16 as an integer",
        {"input": {"a": 1}},
        "1a50e63d5b4dd909bac43ceac467b08f9e3c80d0c1bbb552f3583f3b74d6b2a4",
    ),
    (
        "V16 as a double",
        {"input": {"a": 1.0}},
        "1a50e63d5b4dd909bac43ceac467b08f9e3c80d0c1bbb552f3583f3b74d6b2a4",
    ),
    (
        "V17",
        {"input": {"a": True}},
        "ad72f671bccedb511e4cb220d707a7753717d8c2c2d70053d60881c2b7d23dd3",
    ),
    (
        "V18",
        {"input": {"t": 'a\tb\nc\x00\x1f"\\/\x7f\u2028'}},
        "30cb6d914be1aef15f0f122a3ff1d8198893318ea4e231cb673087d6875391ab",
    ),
    (
        "V19",
        {"input": {"n": 9007199254740991}},
        "5eaa9bc47aebd9c66efaad127f493736b260765ecf949fb76417827772b03fc3",
    ),
    (
        "V19b",
        {"input": {"n": 9007199254740992}},
        "c01f17436866f1caeb779c4263a632f3a3285a933b3e091281dc0cc134e7e474",
    ),
    (
        "V19c as an integer",
        {"input": {"n": 10**16}},
        "1fbac53a726ea27ef8d48734baeda358ec8f79e91c3807a793d355fc649a238d",
    ),
    (
        "V19c as a double",
        {"input": {"n": 1e16}},
        "1fbac53a726ea27ef8d48734baeda358ec8f79e91c3807a793d355fc649a238d",
    ),
    (
        "V19d as an integer",
        {"input": {"n": 10**22}},
        "c7b1c992056ab2c2c790e26aca54171ac4adfd0631ba12120dccf37113bfe964",
    ),
    (
        "V19d as a double",
        {"input": {"n": 1e22}},
        "c7b1c992056ab2c2c790e26aca54171ac4adfd0631ba12120dccf37113bfe964",
    ),
]

APPROVAL_VECTORS: list[tuple[str, Any, str]] = [
    (
        "V20",
        {"implement": "report.csv, rows only"},
        "c83f317e3379644278753d48478b2f6531079a5c96a1f7b0afb64fb598dded09",
    ),
    (
        "V21",
        {"implement": "report.csv, header and rows"},
        "5d40cd460b2c4641c28ec9e65f63429807007a5a4f6b040302c8f908f8e228c4",
    ),
    ("V22", None, "e2e6798250291cbc27174ec89c30d55849e16a7359c3d4fd98ee95b060a51451"),
    (
        "V23",
        {"change": "abc"},
        "c9e964c27d911d5e57bc946e723ec4f6b404cc7b4d6e21180556e2f0dc766212",
    ),
]


@pytest.mark.parametrize(
    ("changes", "digest"), [v[1:] for v in VECTORS], ids=[v[0] for v in VECTORS]
)
def test_the_release_question_has_its_known_digest(changes: dict[str, Any], digest: str) -> None:
    request = create_callback_gate(definition(**changes))

    assert request.digest == digest
    assert request.request_id == f"release-approval#{request.gate_version}#{digest}"
    assert callback_request_digest(definition(**changes)) == digest


@pytest.mark.parametrize(
    ("given", "digest"), [v[1:] for v in APPROVAL_VECTORS], ids=[v[0] for v in APPROVAL_VECTORS]
)
def test_an_approval_step_asks_the_known_question(given: Any, digest: str) -> None:
    request = create_callback_gate(
        gate_id="approve",
        gate_version=1,
        decision_text="Ship this change?",
        response_schema=schema(WITH_NOTE, "approved"),
        input=given,
    )

    assert request.digest == digest


def test_escaped_text_would_have_given_another_digest() -> None:
    request = create_callback_gate(
        definition(input={"titre": "R\u00e9sum\u00e9 \u2014 \u2713 \U0001f680"})
    )

    assert request.digest != "a6e3119c3e66c9a8e194ea7791d623e34baca87653425c0e05b26c89f2def152"
