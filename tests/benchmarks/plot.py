"""The comparison as a picture: bars of one panel per measurement, in plain SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from tests.benchmarks.rows import OURS, Row, spoken

WIDTH: Final = 760
LABEL: Final = 150
VALUE: Final = 110
BAR: Final = 18
STEP: Final = 26
HEAD: Final = 44
STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #2a2723 }
.what { font-weight: 600 }
.quiet { fill: #6b6660 }
.bar { fill: #a9a39a }
.ours { fill: #3b5bb5 }
.span { stroke: #2a2723; stroke-width: 1.5 }
.ground { fill: #fdfcfa }
@media (prefers-color-scheme: dark) {
  text { fill: #ece9e4 }
  .quiet { fill: #aaa59e }
  .bar { fill: #79746c }
  .ours { fill: #8fa8f0 }
  .span { stroke: #ece9e4 }
  .ground { fill: #1b1917 }
}
"""


def svg(panels: Sequence[tuple[str, str, Sequence[Row]]]) -> str:
    """A picture of panels, each a title, a note and its rows; rows without figures are left out."""
    body: list[str] = []
    top = 12
    for title, note, rows in panels:
        shown = [row for row in rows if row.values]
        if shown:
            body += _panel(title, note, shown, top)
            top += HEAD + STEP * len(shown) + 16
    size = f'width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="Benchmarks">',
            f"<style>{STYLE}</style>",
            f'<rect class="ground" width="{WIDTH}" height="{top}" rx="8"/>',
            *body,
            "</svg>\n",
        ]
    )


def _panel(title: str, note: str, rows: Sequence[Row], top: int) -> Iterator[str]:
    yield _text(16, top + 16, title, "what")
    yield _text(16, top + 34, note, "quiet")
    room = WIDTH - LABEL - VALUE - 32
    scale = room / max(max(row.values) for row in rows)
    for number, row in enumerate(rows):
        y = top + HEAD + STEP * number
        middle = y + BAR / 2
        yield _text(16, y + 14, row.who if len({each.who for each in rows}) > 1 else row.what)
        kind = "bar ours" if row.who == OURS else "bar"
        width = max(1.0, row.figure * scale)
        size = f'width="{width:.1f}" height="{BAR}" rx="2"'
        yield f'<rect class="{kind}" x="{LABEL}" y="{y}" {size}/>'
        low, high = (LABEL + value * scale for value in (min(row.values), max(row.values)))
        yield f'<path class="span" d="M{low:.1f} {middle}H{high:.1f}"/>'
        yield _text(
            LABEL + max(width, high - LABEL) + 8, y + 14, f"{spoken(row.figure)} {row.unit}"
        )


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{named}>{escape(words)}</text>'
