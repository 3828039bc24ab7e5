from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from runs.kernel.conditions import (
    Condition,
    ConditionResult,
    all_of,
    always,
    any_of,
    describe_conditions,
    evaluate,
    failed,
    is_data,
    never,
    not_,
    passed,
    predicate,
    required_names,
    to_condition,
)
from runs.kernel.errors import DeclarationError, LoopError
from runs.kernel.outcomes import Outcome

NEEDS = {
    "ok": Outcome(status="pass"),
    "skipped": Outcome(status="pass", data={"skipped": True}),
    "bad": Outcome(status="fail"),
    "spent": Outcome(status="exhausted"),
    "cut": Outcome(status="aborted"),
    "waits": Outcome(status="paused"),
}
CTX = SimpleNamespace(needs=NEEDS)


def says(met: bool, **more: Any) -> Condition:
    return predicate(lambda _ctx, _last: ConditionResult(met=met, **more), "says")


@pytest.mark.parametrize(
    ("name", "is_passed", "is_failed"),
    [
        ("ok", True, False),
        ("skipped", True, False),
        ("bad", False, True),
        ("spent", False, True),
        ("cut", False, False),
        ("waits", False, False),
    ],
)
def test_r88_r89_passed_and_failed_read_a_need(name: str, is_passed: bool, is_failed: bool) -> None:
    assert passed(name)(CTX).met is is_passed
    assert failed(name)(CTX).met is is_failed
    assert evaluate(passed(name).shape, NEEDS).met is is_passed


@pytest.mark.parametrize("ctx", [CTX, SimpleNamespace(needs=None), SimpleNamespace()])
def test_r90_reading_what_is_no_need_is_an_error(ctx: Any) -> None:
    with pytest.raises(LoopError, match="'other'") as caught:
        passed("other")(ctx)

    assert caught.value.code == "VALIDATION"


def test_r85_all_of_stops_at_the_first_unmet_and_carries_its_output() -> None:
    result = all_of(says(True), says(False, output="why"), says(True, output="no"))(CTX)

    assert (result.met, result.output) == (False, "why")


def test_r85_all_of_that_is_met_carries_no_output() -> None:
    assert all_of(says(True, output="a"), says(True, output="b"))(CTX).output is None


def test_r85_any_of_stops_at_the_first_met_and_carries_output_and_confidence() -> None:
    asked: list[str] = []

    def last(_ctx: Any, _last: Any) -> bool:
        asked.append("last")
        return True

    result = any_of(says(False), says(True, output="o", confidence=0.5), last)(CTX)

    assert (result.met, result.output, result.confidence) == (True, "o", 0.5)
    assert asked == []


def test_r85_any_of_that_is_not_met_carries_the_first_output_there_is() -> None:
    result = any_of(says(False), says(False, output="first"), says(False, output="second"))(CTX)

    assert (result.met, result.output) == (False, "first")


def test_r85_not_inverts_and_keeps_output_and_confidence() -> None:
    result = not_(says(False, output="o", confidence=0.25))(CTX)

    assert (result.met, result.output, result.confidence) == (True, "o", 0.25)


def test_r86_constants_and_empty_lists() -> None:
    assert always(CTX).met
    assert not never(CTX).met
    assert all_of()(CTX).met
    assert not any_of()(CTX).met


@pytest.mark.parametrize(("value", "met"), [(True, True), (0, False), ("x", True), (None, False)])
def test_r84_what_a_predicate_returns_is_read_as_truth(value: Any, met: bool) -> None:
    assert to_condition(lambda _ctx, _last: value)(CTX).met is met


def test_r82_r84_a_predicate_may_return_a_result_or_a_mapping_of_one() -> None:
    given = {"met": False, "reason": "r", "output": "o", "confidence": 0.5}
    result = to_condition(lambda _ctx, _last: given)(CTX)

    assert result.to_json() == given


@pytest.mark.parametrize("value", [{"met": 1}, {"met": "yes"}, ConditionResult(met=1)])  # type: ignore[arg-type]  # wrong on purpose
def test_r84_a_met_that_is_no_bool_is_refused(value: Any) -> None:
    with pytest.raises(LoopError, match="no bool") as caught:
        to_condition(lambda _ctx, _last: value)(CTX)

    assert caught.value.code == "VALIDATION"


def test_a_predicate_reads_context_and_last_outcome() -> None:
    last = Outcome(status="fail", summary="s")
    seen = to_condition(lambda ctx, given: ctx is CTX and given is last)

    assert seen(CTX, last).met


def test_r83_a_list_means_all_and_any_when_asked() -> None:
    both = [always, [never]]

    assert not to_condition(both)(CTX).met
    assert to_condition(both, "any")(CTX).met


@pytest.mark.parametrize("value", [None, 3, "passed"])
def test_r83_what_is_no_condition_is_refused_when_declared(value: Any) -> None:
    with pytest.raises(DeclarationError):
        to_condition(value)


@pytest.mark.parametrize("name", ["", None, 3])
def test_passed_takes_the_name_of_a_node(name: Any) -> None:
    with pytest.raises(DeclarationError):
        passed(name)


def test_r105_descriptions_are_one_label_per_condition() -> None:
    def fresh(_ctx: Any, _last: Any) -> bool:
        return True

    given = [passed("a"), [predicate(fresh, "is fresh"), fresh], lambda _c, _l: True]

    assert describe_conditions(given) == ["passed(a)", "is fresh", "fresh", "check"]
    assert describe_conditions(any_of(passed("a"), not_(failed("b")))) == [
        "any_of(passed(a), not failed(b))"
    ]
    assert describe_conditions(None) == []


def test_only_conditions_without_code_are_data() -> None:
    assert is_data(all_of(passed("a"), not_(any_of(always, never))).shape)
    assert not is_data(all_of(passed("a"), says(True)).shape)


def test_r108_names_are_required_directly_in_lists_and_in_all_of_alone() -> None:
    given = to_condition([passed("a"), all_of(failed("b")), any_of(passed("c")), not_(passed("d"))])

    assert required_names(given.shape) == [("passed", "a"), ("failed", "b")]
