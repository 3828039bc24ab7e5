"""What was measured, as lines of one table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

OURS: Final = "Obversa"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure: the values of its rounds, or the words that say why there are none."""

    what: str
    who: str = OURS
    values: Sequence[float] = ()
    unit: str = "ms"
    words: str = ""
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def figure(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.values)

    @property
    def text(self) -> str:
        if not self.values:
            return self.words
        said = f"{spoken(self.figure)} {self.unit}"
        return f"{said}, {self.words}" if self.words else said

    @property
    def span(self) -> str:
        """The lowest and the highest round."""
        if len(self.values) < 2:
            return ""
        return f"{spoken(min(self.values))} to {spoken(max(self.values))}"


def spoken(value: float) -> str:
    """A figure with as many digits as it deserves."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def ratio(row: Row, rows: Sequence[Row]) -> str:
    """The row's median by that of Obversa's row of the same name."""
    ours = next((each for each in rows if each.what == row.what and each.who == OURS), None)
    if row.who == OURS or ours is None or not (row.values and ours.values and ours.figure):
        return ""
    return f"{row.figure / ours.figure:.2f}"


def markdown(rows: Sequence[Row]) -> str:
    """The table."""
    lines = [
        "| measured | of | median | lowest to highest round | by Obversa's |",
        "| --- | --- | --- | --- | --- |",
    ]
    before = ""
    for row in rows:
        what = "" if row.what == before else row.what
        lines.append(f"| {what} | {row.who} | {row.text} | {row.span} | {ratio(row, rows)} |")
        before = row.what
    return "\n".join(lines) + "\n"
