"""A chart of durations as plain numbers for an SVG: time runs right, longer is higher.

Durations of minutes stand beside durations of days, so the scale is logarithmic.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any, Final

from gates.teams.times import Measure, Span
from runs.pages import words

WIDTH: Final = 720
HEIGHT: Final = 168
_LEFT: Final = 60
_RIGHT: Final = 24
_APART: Final = 14
_TOP: Final = 10
_BOTTOM: Final = 24
_MARKS: Final = (
    (1, "1 s"),
    (60, "1 min"),
    (600, "10 min"),
    (3_600, "1 h"),
    (28_800, "8 h"),
    (86_400, "1 day"),
    (604_800, "1 week"),
    (2_592_000, "30 days"),
)


def chart(spans: Sequence[Span], name: str) -> dict[str, Any]:
    """What templates/gates/_times_chart.html draws: marks, and one bar per span with answers."""
    measures: list[Measure | None] = [getattr(span, name) for span in spans]
    known = [one for one in measures if one is not None]
    longest = max((one.p90 for one in known), default=60.0)
    shortest = min((one.median for one in known), default=1.0)
    marks = _marks(shortest, longest)
    low, high = log(marks[0][0]), log(marks[-1][0])

    def y(seconds: float) -> float:
        share = (log(max(seconds, marks[0][0])) - low) / (high - low)
        return round(_TOP + (1 - min(1.0, share)) * (HEIGHT - _TOP - _BOTTOM), 1)

    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(spans))
    width = round(min(28.0, step * 0.6), 1)
    every = max(1, -(-len(spans) // 8))
    bars, labels = [], []
    for number, (span, one) in enumerate(zip(spans, measures, strict=True)):
        middle = _LEFT + step * (number + 0.5)
        if (len(spans) - 1 - number) % every == 0:
            labels.append({"x": round(middle, 1), "text": f"{span.starts:%-d %b}"})
        if one is not None:
            top, centre = y(one.p90), y(one.median)
            bars.append(
                {
                    "x": round(middle - width / 2, 1),
                    "y": top,
                    "width": width,
                    "height": round(max(1.0, centre - top), 1),
                    "median": centre,
                    "to": round(middle + width / 2, 1),
                    "title": f"{span.starts:%-d %b}: median {words.span(one.median)}, "
                    f"9 of 10 within {words.span(one.p90)}, {span.count} answered",
                }
            )
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": _LEFT,
        "base": HEIGHT - 6,
        "marks": _apart([{"y": y(seconds), "text": text} for seconds, text in marks]),
        "bars": bars,
        "labels": labels,
    }


def _apart(marks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The marks whose words do not run into those of the one below; both ends stay."""
    kept = marks[:1]
    for mark in marks[1:-1]:
        if kept[-1]["y"] - mark["y"] >= _APART and mark["y"] - marks[-1]["y"] >= _APART:
            kept.append(mark)
    return [*kept, marks[-1]]


def _marks(shortest: float, longest: float) -> list[tuple[int, str]]:
    """The marks from the one below the shortest to the one above the longest."""
    first = max((number for number, (at, _) in enumerate(_MARKS) if at <= shortest), default=0)
    last = min(
        (number for number, (at, _) in enumerate(_MARKS) if at >= longest),
        default=len(_MARKS) - 1,
    )
    first = min(first, len(_MARKS) - 2)
    return list(_MARKS[first : max(last, first + 1) + 1])


def rows(spans: Sequence[Span]) -> list[dict[str, Any]]:
    """The same as a table, newest first; spans without answers are left out."""
    return [
        {
            "starts": span.starts,
            "count": span.count,
            **{
                f"{name}_{part}": words.span(getattr(one, part)) if one is not None else ""
                for name, one in (("claim", span.claim), ("answer", span.answer))
                for part in ("median", "p90")
            },
        }
        for span in reversed(spans)
        if span.count
    ]
