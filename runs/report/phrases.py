"""Marks and turns of phrase that lines about events share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from runs.report.text import Wire, facts, joined, text

Told = tuple[str, str]

START: Final = "\u25b8"
NOTE: Final = "\u2022"
WRONG: Final = "\u2717"
BACK: Final = "\u21a9"
WAITS: Final = "\u23f8"
MARKS: Final[Mapping[str, str]] = {
    "pass": "\u2713",
    "fail": WRONG,
    "exhausted": WRONG,
    "aborted": "\u25a0",
    "paused": WAITS,
}


def ended(outcome: object) -> str:
    """How it ended: the status, and whether an engine was late."""
    given = facts(outcome)
    return joined(text(given.get("status")), "late" if given.get("late") is True else "")


def mark_of(outcome: object) -> str:
    """The mark of an outcome's status."""
    return MARKS.get(text(facts(outcome).get("status")), NOTE)


def after(words: str, more: object, by: str = ": ") -> str:
    """The words, and what follows them if it says something."""
    return joined(words, text(more), by=by)


def plain(words: str, mark: str = NOTE, more: str = "reason") -> Callable[[Wire], Told]:
    """Words that are the same for every event of a kind, and the field that says more."""
    return lambda event: (mark, after(words, event.get(more)))
