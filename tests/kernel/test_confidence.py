from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.confidence import (
    confidence_from_text,
    fraction_in,
    geometric_mean,
    last_decision_line,
    object_with,
    share,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("verdict: yes", "yes"),
        ("long prose\n\nVERDICT: No.\n\n  ", "No."),
        ("<verdict>yes</verdict>", "yes"),
        ("so <Verdict> yes </Verdict>, I think", "yes"),
        ("- **Verdict:** yes", "yes"),
        ("verdict: yes\nbut read on", None),
        ("the verdict: yes", None),
        ("verdict:", None),
        ("", None),
    ],
)
def test_r101_the_closing_line_decides(text: str, value: str | None) -> None:
    assert last_decision_line(text, "verdict") == value


def test_r101_last_match_reads_the_last_line_with_the_token() -> None:
    text = "verdict: no\nverdict: yes\nthat is all"

    assert last_decision_line(text, "verdict", mode="last-match") == "yes"
    assert last_decision_line("nothing", "verdict", mode="last-match") is None


@pytest.mark.parametrize(
    ("said", "value"), [("SHIP", "Ship"), ("ship.", "Ship"), ("hold", "HOLD"), ("perhaps", None)]
)
def test_r101_with_values_the_canonical_spelling_is_returned(said: str, value: str | None) -> None:
    assert last_decision_line(f"Decision: {said}", "decision", ["Ship", "HOLD"]) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("confidence: 0.9", 0.9),
        ("confidence: 90%", 0.9),
        ("confidence: 90", 0.9),
        ("confidence: 1", 1.0),
        ("confidence: 1%", 0.01),
        ("<confidence>85 %</confidence>", 0.85),
        ("confidence: 0.2\nconfidence: 0.3\nand more", 0.3),
        ("confidence: 150", None),
        ("confidence: -1", None),
        ("confidence: nan", None),
        ("confidence: 1e3", None),
        ("confidence: high", None),
        ("sure", None),
    ],
)
def test_r102_a_confidence_is_a_share(text: str, value: float | None) -> None:
    found = confidence_from_text(text)

    assert found == (None if value is None else pytest.approx(value))


def test_r102_another_token_may_be_read() -> None:
    assert confidence_from_text("score: 40%", token="score") == 0.4


@pytest.mark.parametrize("value", [True, None, "0.5", float("nan"), -0.1, 1.1, [0.5]])
def test_r96_what_is_no_share_counts_as_nothing(value: object) -> None:
    assert share(value) == 0.0


def test_r96_the_first_object_with_the_key_wins_over_earlier_ones() -> None:
    text = 'for {x: 1} I say {"a": {"b": 1}} and {"verdict": "yes"} or {"verdict": "no"}'

    assert object_with(text, "verdict") == {"verdict": "yes"}
    assert object_with('{"verdict": "yes"', "verdict") is None
    assert object_with("no object", "verdict") is None


def test_r97_one_zero_makes_the_mean_zero() -> None:
    assert geometric_mean([0.9, 0.9]) == pytest.approx(0.9)
    assert geometric_mean([0.25, 1.0]) == pytest.approx(0.5)
    assert geometric_mean([1.0, 0.0]) == 0.0
    assert geometric_mean([]) == 0.0


@given(st.text(), st.sampled_from(["closing", "last-match"]))
def test_no_text_breaks_a_reader(text: str, mode: str) -> None:
    last_decision_line(text, "verdict", ["yes", "no"], mode=mode)  # type: ignore[arg-type]  # one of two
    found = confidence_from_text(f"confidence: {text}")
    assert found is None or 0 <= found <= 1
    object_with(text, "verdict")


@given(st.integers(0, 100))
def test_a_percentage_is_read_back(percent: int) -> None:
    assert fraction_in(f"{percent}%") == pytest.approx(percent / 100)


@given(st.dictionaries(st.text(), st.integers()), st.text().filter(lambda text: "{" not in text))
def test_an_object_is_found_wherever_it_stands(found: dict[str, int], around: str) -> None:
    found["verdict"] = 1

    assert object_with(around + json.dumps(found) + around, "verdict") == found


@given(st.lists(st.floats(0.01, 1), min_size=1))
def test_the_mean_lies_among_its_scores(scores: list[float]) -> None:
    assert min(scores) - 1e-9 <= geometric_mean(scores) <= max(scores) + 1e-9
