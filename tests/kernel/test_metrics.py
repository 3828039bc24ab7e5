from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.kernel.metrics import metric_in


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"lines": 3}', 3.0),
        ('{"metrics": {"lines": 3.5}, "lines": 9}', 3.5),
        ('{"lines": 1}\n  {"lines": 2}  \nall done', 2.0),
        ('{"lines": 1}\n{not json}', 1.0),
        ('{"lines": 1}\n[2]\n"x"', 1.0),
        ('{"lines": 1}\n{"other": 2}', None),
        ('{"lines": true}', None),
        ('{"lines": "3"}', None),
        ('{"lines": NaN}', None),
        ('{"lines": 1e999}', None),
        ('{"lines": null}', None),
        ("lines: 3", None),
        ("", None),
    ],
)
def test_r94_the_last_object_line_counts(text: str, value: float | None) -> None:
    assert metric_in(text, "lines") == value


def test_r94_an_integer_no_double_holds_is_no_metric() -> None:
    assert metric_in(json.dumps({"lines": 10**400}), "lines") is None


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_r94_any_output_may_stand_before_it(text: str, value: float) -> None:
    metric_in(text, "lines")
    assert metric_in(f"{text}\n{json.dumps({'lines': value})}\n", "lines") == value
