"""What a question declares sensitive, and what is left when it is masked."""

from __future__ import annotations

from typing import Any

import pytest

from runs.kernel.gate import create_callback_gate
from runs.kernel.masking import MASK, fault, is_masked, mask_requests, masked, pointers_of

ABOUT = {
    "host": "db1",
    "password": "s3cret",
    "hosts": [{"name": "a", "token": "t1"}, {"name": "b"}],
}


@pytest.mark.parametrize(
    ("pointers", "wanted"),
    [
        (["/password"], {**ABOUT, "password": MASK}),
        (["/nothing", "/host/deeper"], ABOUT),
        (
            ["/hosts/*/token"],
            {**ABOUT, "hosts": [{"name": "a", "token": MASK}, {"name": "b"}]},
        ),
        (["/hosts/1"], {**ABOUT, "hosts": [ABOUT["hosts"][0], MASK]}),
        ([""], MASK),
    ],
)
def test_only_what_is_declared_is_masked(pointers: list[str], wanted: Any) -> None:
    before = repr(ABOUT)

    assert masked(ABOUT, pointers) == wanted
    assert repr(ABOUT) == before


def test_a_star_means_every_member_of_an_object_and_names_may_hold_a_slash() -> None:
    assert masked({"a": {"x": 1}, "b": 2}, ["/*/x"]) == {"a": {"x": MASK}, "b": 2}
    assert masked({"a/b": 1, "c~d": 2}, ["/a~1b", "/c~0d"]) == {"a/b": MASK, "c~d": MASK}


def test_a_place_inside_what_is_masked_is_masked_too() -> None:
    assert is_masked("/hosts/0/token/inner", ["/hosts/*/token"])
    assert not is_masked("/hosts/0/name", ["/hosts/*/token"])
    assert is_masked("/anything", [""])


@pytest.mark.parametrize("given", ["/password", [1], ["password"], ["/a"] * 101, {"a": 1}, None])
def test_a_declaration_that_cannot_be_read_masks_everything(given: Any) -> None:
    assert fault({"sensitive": given})
    assert masked(ABOUT, pointers_of({"sensitive": given})) == MASK


def test_questions_are_masked_wherever_a_fact_holds_them() -> None:
    request = create_callback_gate(
        gate_id="g",
        gate_version=1,
        decision_text="Use it?",
        response_schema={},
        input=ABOUT,
        presentation={"sensitive": ["/password"]},
    ).to_wire()
    fact: dict[str, Any] = {
        "kind": "dag:node",
        "outcome": {"status": "paused", "data": request},
        "n": [request],
    }

    told = mask_requests(fact)

    assert told["outcome"]["data"]["input"]["password"] == MASK
    assert told["n"][0]["input"]["host"] == "db1"
    assert "s3cret" not in repr(told)
    assert fact["outcome"]["data"]["input"]["password"] == "s3cret"


def test_what_holds_nothing_sensitive_stays_the_same_object() -> None:
    fact = {"kind": "log", "lines": [{"input": 1}, {"presentation": {}}]}

    assert mask_requests(fact) is fact
