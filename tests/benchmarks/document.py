"""docs/performance.md and its picture: what was measured last, and on what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.benchmarks import cycles, plot
from tests.benchmarks.rows import Row, markdown
from tests.benchmarks.stage import ROOT
from tests.benchmarks.systems.base import System

PLACE: Final = ROOT / "docs" / "performance.md"
PICTURE: Final = ROOT / "docs" / "performance.svg"
BEGIN: Final = "<!-- figures: written by `python -m tests.benchmarks --keep` -->"
END: Final = "<!-- end of figures -->"


def keep(rows: Sequence[Row], about: Sequence[str], systems: Sequence[System]) -> None:
    """Put the figures into their place in the document, and the picture beside it."""
    given = [f"- **{system.name}**: {system.given}." for system in systems]
    parts = [
        "\n".join(f"- {line}" for line in about),
        "![Gate cycles of every system](performance.svg)",
        markdown(rows).rstrip(),
        "What each was given, two worker processes apiece:",
        "\n".join(given),
    ]
    before, _, rest = PLACE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PLACE.write_text("\n\n".join([f"{before}{BEGIN}", *parts, f"{END}{after}"]))
    PICTURE.write_text(plot.svg(_panels(rows)))


def _panels(rows: Sequence[Row]) -> list[tuple[str, str, Sequence[Row]]]:
    """The three that compare."""
    named = {
        "Answer to step B's start": ("milliseconds, nothing else going on; less is better", "idle"),
        "Gate cycles a second": ("100 runs at once, two workers; more is better", "rate"),
        "Processor time of a cycle": ("milliseconds of all processes; less is better", "cost"),
    }
    found = {
        "idle": [row for row in rows if row.what == cycles.IDLE],
        "rate": [row for row in rows if row.what.startswith("gate cycles a second")],
        "cost": [row for row in rows if row.what == cycles.COST],
    }
    return [(title, note, found[which]) for title, (note, which) in named.items()]
