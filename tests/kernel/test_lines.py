"""Which lines changed between two texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.lines import Line, Steps, compare, split

_TEXTS = st.lists(st.sampled_from("abc"), max_size=12).map("\n".join)
_ENDED = st.tuples(_TEXTS, st.sampled_from(["", "\n"])).map("".join)


def signs(old: str, new: str) -> list[str]:
    sign = {"same": " ", "old": "-", "new": "+"}
    return [sign[line.kind] + line.text for line in compare(old, new, Steps())]


def side(lines: list[Line], without: str) -> str:
    kept = [line for line in lines if line.kind != without]
    return "".join(line.text + ("\n" if line.ends else "") for line in kept)


@given(old=_ENDED, new=_ENDED)
def test_both_texts_can_be_read_out_of_what_changed(old: str, new: str) -> None:
    lines = compare(old, new, Steps())
    assert (side(lines, "new"), side(lines, "old")) == (old, new)
    assert [line.old for line in lines if line.old] == list(range(1, len(split(old)) + 1))
    assert [line.new for line in lines if line.new] == list(range(1, len(split(new)) + 1))


@given(old=_ENDED, new=_ENDED)
def test_as_many_lines_stay_as_can(old: str, new: str) -> None:
    a, b = split(old), split(new)
    longest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a)):
        for j in range(len(b)):
            kept = longest[i][j] + 1 if a[i] == b[j] else 0
            longest[i + 1][j + 1] = max(kept, longest[i][j + 1], longest[i + 1][j])
    same = [line for line in compare(old, new, Steps()) if line.kind == "same"]
    assert len(same) == longest[-1][-1]


def test_what_was_taken_out_stands_before_what_came_in() -> None:
    assert signs("a\nb\nc\n", "a\nx\ny\nc\n") == [" a", "-b", "+x", "+y", " c"]


def test_a_missing_line_break_at_the_end_is_a_change() -> None:
    assert [line.ends for line in compare("a\n", "a", Steps())] == [True, False]


def test_no_text_has_no_lines() -> None:
    assert compare("", "", Steps()) == []
    assert signs("", "a\n") == ["+a"]
    assert signs("a\n", "") == ["-a"]


def test_what_costs_too_much_is_replaced_whole_and_still_true() -> None:
    steps = Steps(left=10)
    old, new = "".join("ab"[i % 2] + "\n" for i in range(50)), "b\nb\na\na\n" * 12
    lines = compare(old, new, steps)
    assert (side(lines, "new"), side(lines, "old")) == (old, new)
    assert steps.left < 0
