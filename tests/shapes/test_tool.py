"""What an author may declare as a tool, and what is refused (interactions.md I32, I33, I38)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from runs import ToolRefused, destructive, external_write, tool
from runs.kernel.errors import DeclarationError
from runs.shapes.tool import Tool
from runs.shapes.tool_input import ToolInput

POST: dict[str, Any] = {
    "type": "object",
    "properties": {
        "draft_id": {"type": "string", "pattern": "^d[0-9]+$"},
        "options": {
            "type": "object",
            "properties": {"loud": {"type": "boolean", "default": False}},
            "default": {},
        },
    },
    "required": ["draft_id"],
    "additionalProperties": False,
}


class Post(BaseModel):
    draft_id: str
    channel: str = "linkedin"


def act(given: Any) -> Any:
    return given


def made(**options: Any) -> Tool:
    facts: dict[str, Any] = {"name": "act", "risk": "low", "summary": "Act on {draft_id}"}
    found: Tool = tool(act, **({"input": POST} | facts | options))
    return found


@pytest.mark.parametrize(
    ("options", "policy", "keyed"),
    [
        ({}, "always", True),
        ({"effect": "external-write"}, "always", True),
        ({"effect": "destructive"}, "always", True),
        ({"effect": "internal-write"}, "never", False),
        ({"effect": "read"}, "never", False),
    ],
)
def test_what_is_asked_about_follows_from_the_effect(
    options: dict[str, Any], policy: str, keyed: bool
) -> None:
    found = made(**options)

    assert (found.policy, found.is_keyed) == (policy, keyed)


def test_the_helpers_fix_what_belongs_together() -> None:
    facts: dict[str, Any] = {"input": POST, "risk": "low", "summary": "Act on {draft_id}"}
    writes = external_write(act, name="writes", **facts)
    granted = external_write(act, name="granted", grants=True, **facts)
    wipes = destructive(act, name="wipes", **facts)

    assert (writes.effect, writes.policy, granted.policy) == ("external-write", "always", "policy")
    assert (wipes.effect, wipes.policy) == ("destructive", "always")
    with pytest.raises(DeclarationError, match="approval_policy of such a tool is fixed"):
        destructive(act, name="x", approval_policy="never", **facts)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"summary": ""}, "names its arguments"),
        ({"summary": "Act"}, "names its arguments"),
        ({"summary": "Act on {other}"}, "which is no input"),
        ({"sensitive": ["/draft_id"]}, "which is sensitive"),
        ({"summary": "{options}", "sensitive": ["/options/key"]}, "which is sensitive"),
        ({"risk": None}, "says its risk"),
        ({"risk": "huge"}, "risk of"),
        ({"effect": "writes"}, "effect of"),
        ({"effect": "destructive", "approval_policy": "never"}, "cannot do without a gate"),
        ({"effect": "read", "category": "send"}, "cannot do without a gate"),
        ({"cost": 5}, "currency of"),
        ({"currency": "EUR"}, "no cost"),
        ({"cost": -1, "currency": "EUR"}, "cost of"),
        ({"recovery": "query"}, 'goes with recovery="query"'),
        ({"recovery": "none", "query": act}, 'goes with recovery="query"'),
        ({"name": "Act now"}, "has a name of"),
        ({"category": "Publish it"}, "category of"),
        ({"expires_in_seconds": 0}, "expires_in_seconds"),
        ({"execution_window_seconds": 10**9}, "execution_window_seconds"),
        ({"sensitive": ["draft_id"]}, "JSON pointer"),
        ({"input": {"type": "array"}}, "its type is object"),
        ({"input": {"$ref": "https://example.com/schema"}}, "leaves it"),
        ({"input": {"properties": {"a": {"pattern": "(?=x)"}}}}, "no JSON Schema"),
        ({"input": 3}, "a JSON Schema or a pydantic model"),
    ],
)
def test_a_tool_that_nobody_could_judge_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        made(**options)


def test_two_functions_do_not_share_a_name() -> None:
    def other(given: Any) -> Any:
        return given

    made(name="shared")
    with pytest.raises(DeclarationError, match="is there already"):
        tool(other, name="shared", effect="read")


def test_a_tool_is_not_called_past_its_gate() -> None:
    with pytest.raises(ToolRefused, match="runs through ctx"):
        made()({"draft_id": "d1"})


def test_another_digest_is_another_tool() -> None:
    digests = {
        made().digest,
        made(version=2).digest,
        made(category="publish").digest,
        made(effect="destructive").digest,
        made(input={**POST, "additionalProperties": True}).digest,
    }

    assert len(digests) == 5
    assert made().digest == made(summary="Act on it: {draft_id}").digest


# --- input ---------------------------------------------------------------------------------------


def test_defaults_are_filled_in_all_the_way_down() -> None:
    read = ToolInput.declared("it", POST)

    assert read.normalised({"draft_id": "d1"}) == {"draft_id": "d1", "options": {"loud": False}}


def test_a_model_gives_its_defaults_and_the_function_gets_the_model() -> None:
    read = ToolInput.declared("it", Post)
    stored = read.normalised({"draft_id": "d1"})

    assert stored == {"draft_id": "d1", "channel": "linkedin"}
    assert read.normalised(Post(draft_id="d1")) == stored
    assert read.for_function(stored) == Post(draft_id="d1")


@pytest.mark.parametrize("declared", [POST, Post])
@pytest.mark.parametrize("given", [{}, {"draft_id": 7}, [], None, "d1"])
def test_what_does_not_fit_is_refused(declared: Any, given: Any) -> None:
    with pytest.raises(ToolRefused) as refused:
        ToolInput.declared("it", declared).normalised(given)

    assert refused.value.reason == "invalid_input"


@pytest.mark.parametrize(
    "given",
    [{"draft_id": "secret"}, {"draft_id": "d1", "more": 1}, {"draft_id": "d1", "options": 1}],
)
def test_a_refusal_does_not_repeat_what_was_given(given: dict[str, Any]) -> None:
    with pytest.raises(ToolRefused) as refused:
        ToolInput.declared("it", POST).normalised(given)

    assert "secret" not in str(refused.value)


def test_an_input_has_its_bounds() -> None:
    read = ToolInput.declared("it", {"type": "object"})
    deep: Any = {}
    for _ in range(40):
        deep = {"in": deep}

    for given in ({"text": "x" * 70_000}, deep, {"n": float("nan")}):
        with pytest.raises(ToolRefused, match="invalid_input"):
            read.normalised(given)
